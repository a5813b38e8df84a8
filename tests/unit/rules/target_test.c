/* SPDX-License-Identifier: MIT
 *
 * Where redirects and rewrites lead, and which targets are refused.
 */
#include "rules/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct rules_captures make_captures(const char *first, const char *second)
{
    return (struct rules_captures){ .part = { span_text(first), span_text(second) } };
}

static void a_redirect_carries_stars_and_query_over(void **state)
{
    (void)state;
    static const struct {
        const char *target, *first, *second, *query, *location;
    } rows[] = {
        { "/new", "", "", NULL, "/new" },
        { "/new", "", "", "a=b&c", "/new?a=b&c" },
        { "/new", "", "", "", "/new?" },
        { "/new?x=1", "", "", "a=b", "/new?x=1" },
        { "/new#top", "", "", "a", "/new?a#top" },
        { "/new?x#top", "", "", "a", "/new?x#top" },
        { "/new/*", "a b", "", NULL, "/new/a%20b" },
        { "/new/**", "a/b/", "", "q", "/new/a/b/?q" },
        { "/*/*", "a", "b", NULL, "/a/b" },
        { "/**/x/*", "", "b", NULL, "/x/b" },
        { "/**", "", "", NULL, "/" },
        { "/**", "/evil.example", "", NULL, "/evil.example" },
        { "/*", "\\evil.example", "", NULL, "/%5Cevil.example" },
        { "/*", "caf\xc3\xa9", "", NULL, "/caf%C3%A9" },
        { "/*", "a?b#c%d", "", NULL, "/a%3Fb%23c%25d" },
        { "/*", "a\r\nX: y\x7f", "", NULL, "/a%0D%0AX:%20y%7F" },
        { "/caf\xc3\xa9/*", "x", "", NULL, "/caf%C3%A9/x" },
        { "/a%20b", "", "", NULL, "/a%20b" },
        { "/search?q=*&p=*", "a&b", "c/d", NULL, "/search?q=a%26b&p=c%2Fd" },
        { "/x#*", "a b", "", NULL, "/x#a%20b" },
        { "https://other.example", "", "", "q", "https://other.example?q" },
        { "https://other.example/", "", "", NULL, "https://other.example/" },
        { "https://other.example/**", "a/b", "", NULL, "https://other.example/a/b" },
        { "https://other.example:8443/**/x", "", "", NULL, "https://other.example:8443/x" },
        { "http://[::1]:80/*", "@a", "", NULL, "http://[::1]:80/@a" },
        { "HTTPS://other.example?q=*", "a/b", "", "z", "HTTPS://other.example?q=a%2Fb" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[256];
        struct buf out = buf_over(bytes, sizeof(bytes));
        struct rules_target target;
        const char *reason;
        const struct rules_captures captures = make_captures(rows[i].first, rows[i].second);
        if (!rules_target_parse_redirect(span_text(rows[i].target), &target, &reason))
            fail_msg("`%s` %s", rows[i].target, reason);
        rules_target_add_location(&target, &captures, rows[i].query != NULL,
                                  rows[i].query ? span_text(rows[i].query) : SPAN(""), &out);
        if (!span_equal(buf_span(&out), span_text(rows[i].location)))
            fail_msg("`%s` leads to `%.*s`, expected `%s`", rows[i].target, (int)out.len, out.at,
                     rows[i].location);
    }
}

static void a_rewrite_leads_to_a_decoded_path(void **state)
{
    (void)state;
    static const struct {
        const char *target, *first, *second, *path;
    } rows[] = {
        { "/index.html", "", "", "/index.html" },
        { "/a b/*", "c d?", "", "/a b/c d?" },
        { "/**/x", "", "", "/x" },
        { "/**", "/a", "", "/a" },
        { "/*.*", "a", "b", "/a.b" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[256];
        struct buf out = buf_over(bytes, sizeof(bytes));
        struct rules_target target;
        const char *reason;
        const struct rules_captures captures = make_captures(rows[i].first, rows[i].second);
        assert_true(rules_target_parse_rewrite(span_text(rows[i].target), &target, &reason));
        rules_target_add_path(&target, &captures, &out);
        assert_true(span_equal(buf_span(&out), span_text(rows[i].path)));
    }
}

static void writes_behind_what_the_buffer_has(void **state)
{
    (void)state;
    char bytes[32];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_target target;
    const char *reason;
    const struct rules_captures captures = make_captures("a", "");
    assert_true(rules_target_parse_rewrite(SPAN("/*"), &target, &reason));
    buf_add(&out, SPAN("key/"));
    rules_target_add_path(&target, &captures, &out);
    assert_true(span_equal(buf_span(&out), SPAN("key//a")));
}

static void refuses_targets_that_lead_elsewhere(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {
        { "", "neither a path nor a URL" },
        { "new", "neither a path nor a URL" },
        { "*", "neither a path nor a URL" },
        { "javascript:alert(1)", "neither a path nor a URL" },
        { "ftp://a/", "neither a path nor a URL" },
        { "//evil.example", "names another host" },
        { "//*", "names another host" },
        { "/\\evil.example", "backslash" },
        { "https://", "neither a path nor a URL" },
        { "https://*/", "neither a path nor a URL" },
        { "https://a*/", "a host that is not one" },
        { "https://user@a/", "a host that is not one" },
        { "https://a//b", "two slashes" },
        { "/a b", "a space or a control byte" },
        { "/a\r\nX: y", "a space or a control byte" },
        { "/100%", "two hexadecimal digits" },
        { "/%4g", "two hexadecimal digits" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rules_target target;
        const char *reason = "";
        if (rules_target_parse_redirect(span_text(rows[i].text), &target, &reason))
            fail_msg("`%s` was taken", rows[i].text);
        if (!strstr(reason, rows[i].reason))
            fail_msg("`%s` %s, expected `%s`", rows[i].text, reason, rows[i].reason);
    }
    static const char *const paths[] = { "index.html", "/a?b", "/a//b", "/../b", "/a\n", "/." };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct rules_target target;
        const char *reason;
        assert_false(rules_target_parse_rewrite(span_text(paths[i]), &target, &reason));
    }
}

static void counts_the_stars(void **state)
{
    (void)state;
    struct rules_target target;
    const char *reason;
    assert_true(rules_target_parse_redirect(SPAN("/*/**/a?*#*"), &target, &reason));
    assert_int_equal(target.stars, 4);
    assert_true(rules_target_parse_rewrite(SPAN("/**"), &target, &reason));
    assert_int_equal(target.stars, 1);
    /* Each of them is filled from a part of the path. A pattern has to have as many. */
    assert_true(rules_target_parse_redirect(SPAN("/n/****"), &target, &reason));
    assert_int_equal(target.stars, 2);
    assert_true(rules_target_parse_redirect(SPAN("/n/***"), &target, &reason));
    assert_int_equal(target.stars, 2);
}

static void a_star_may_stand_for_another_place_of_the_pattern(void **state)
{
    (void)state;
    char bytes[64];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_target target;
    const char *reason;
    const struct rules_captures captures = make_captures("one", "two");
    assert_true(rules_target_parse_redirect(SPAN("/*/*/*"), &target, &reason));
    target.star_of[0] = target.star_of[1] = 1;
    target.star_of[2] = 0;
    rules_target_add_location(&target, &captures, false, SPAN(""), &out);
    assert_true(span_equal(buf_span(&out), SPAN("/two/two/one")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirect_carries_stars_and_query_over),
        cmocka_unit_test(a_rewrite_leads_to_a_decoded_path),
        cmocka_unit_test(writes_behind_what_the_buffer_has),
        cmocka_unit_test(refuses_targets_that_lead_elsewhere),
        cmocka_unit_test(counts_the_stars),
        cmocka_unit_test(a_star_may_stand_for_another_place_of_the_pattern),
    };
    return cmocka_run_group_tests_name("rules/target", tests, NULL, NULL);
}
