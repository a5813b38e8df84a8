/* SPDX-License-Identifier: MIT
 *
 * What patterns of paths cover, which parts their stars take, and which texts are no pattern.
 */
#include "rules/pattern.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct row {
    const char *pattern, *path;
    const char *parts; /* separated by spaces; NULL: the pattern does not cover the path */
};

static void join_parts(const struct rules_pattern *pattern, const struct rules_captures *captures,
                       char out[256])
{
    size_t len = 0;
    for (unsigned i = 0; i < pattern->stars; i++) {
        if (i > 0)
            out[len++] = ' ';
        memcpy(out + len, captures->part[i].at, captures->part[i].len);
        len += captures->part[i].len;
    }
    out[len] = '\0';
}

static void assert_row(const struct row *row)
{
    struct guard pattern_guard, path_guard;
    struct rules_pattern pattern;
    struct rules_captures captures;
    const char *reason;
    char parts[256];

    if (!rules_pattern_parse(guard_text(&pattern_guard, row->pattern), &pattern, &reason))
        fail_msg("`%s` %s", row->pattern, reason);
    bool covered = rules_pattern_matches(&pattern, guard_text(&path_guard, row->path), &captures);
    if (covered != (row->parts != NULL))
        fail_msg("`%s` %s `%s`", row->pattern, covered ? "covers" : "does not cover", row->path);
    if (covered) {
        join_parts(&pattern, &captures, parts);
        assert_string_equal(parts, row->parts);
    }
    guard_done(&pattern_guard);
    guard_done(&path_guard);
}

static void covers_whole_paths_only(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "/", "/", "" },
        { "/", "/a", NULL },
        { "/", "", NULL },
        { "/a", "/a", "" },
        { "/a", "/A", NULL },
        { "/a", "/a/", NULL },
        { "/a", "/ab", NULL },
        { "/a/", "/a", NULL },
        { "/a b\xc3\xa9?", "/a b\xc3\xa9?", "" },
        { "/*", "/", "" },
        { "/*", "/a.txt", "a.txt" },
        { "/*", "/a/", NULL },
        { "/*", "/a/b", NULL },
        { "/a/*", "/a", NULL },
        { "/a/*", "/a/", "" },
        { "/a*c", "/abbbc", "bbb" },
        { "/a*c", "/ac", "" },
        { "/a*c", "/a/c", NULL },
        { "/*.html", "/x.html.html", "x.html" },
        { "/*.html", "/x.htm", NULL },
        { "/*/feed", "/news/feed", "news" },
        { "/*/feed", "/news/x/feed", NULL },
        { "/*-*.js", "/a-b-c.js", "a b-c" },
        { "/*/*/x*", "/a//xy", "a  y" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

static void two_stars_cover_any_number_of_segments(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "/**", "", "" },
        { "/**", "/", "" },
        { "/**", "/a", "a" },
        { "/**", "/a/b/", "a/b/" },
        { "/docs/**", "/docs", "" },
        { "/docs/**", "/docs/", "" },
        { "/docs/**", "/docs/a/b", "a/b" },
        { "/docs/**", "/docs2", NULL },
        { "/docs/**", "/doc", NULL },
        { "/docs/**", "", NULL },
        { "/**/", "/", "" },
        { "/**/", "/a/b/", "a/b" },
        { "/**/", "/a", NULL },
        { "/**/", "", NULL },
        { "/**/x", "/x", "" },
        { "/**/x", "/a/b/x", "a/b" },
        { "/**/x", "/a/b/xx", NULL },
        { "/**/x", "/x/x/x", "x/x" },
        { "/**/x", "/x/y", NULL },
        { "/a/**/b", "/a/b", "" },
        { "/a/**/b", "/a/x/y/b", "x/y" },
        { "/a/**/b", "/ab", NULL },
        { "/a/**/b", "/a/b/c", NULL },
        { "/**/*.css", "/a.css", " a" },
        { "/**/*.css", "/x/y/a.css", "x/y a" },
        { "/**/*.css", "/x.css/a", NULL },
        { "/**/a*/**/b*", "/x/a1/y/z/b2", "x 1 y/z 2" },
        { "/**/a*/**/b*", "/a/b", "   " },
        { "/**/a*/**/b*", "/b/a", NULL },
        { "/**/a/*/b/**", "/a/x/a/y/b/z", "a/x y z" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i]);
}

static void refuses_what_no_path_can_be(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } rows[] = {
        { "", "is missing" },
        { "a", "does not begin with a slash" },
        { "*.css", "does not begin with a slash" },
        { "//", "two slashes" },
        { "/a//b", "two slashes" },
        { "/**//a", "two slashes" },
        { "/./a", "`.` or `..`" },
        { "/a/..", "`.` or `..`" },
        { "/a**", "not a whole segment" },
        { "/***", "not a whole segment" },
        { "/**b/c", "not a whole segment" },
        { "/a\x01", "control byte" },
        { "/\x7f", "control byte" },
        { "/*/*/*/*/*/*/*/*/*", "more than 8 stars" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rules_pattern pattern;
        const char *reason = "";
        if (rules_pattern_parse(span_text(rows[i].text), &pattern, &reason))
            fail_msg("`%s` was taken", rows[i].text);
        if (!strstr(reason, rows[i].reason))
            fail_msg("`%s` %s, expected `%s`", rows[i].text, reason, rows[i].reason);
    }
}

static void refuses_a_pattern_that_is_too_long(void **state)
{
    (void)state;
    static char text[RULES_PATTERN_MAX + 1];
    struct rules_pattern pattern;
    const char *reason;
    memset(text, 'a', sizeof(text));
    text[0] = '/';
    assert_true(rules_pattern_parse(span_of(text, RULES_PATTERN_MAX), &pattern, &reason));
    assert_false(rules_pattern_parse(span_of(text, RULES_PATTERN_MAX + 1), &pattern, &reason));
    assert_string_equal(reason, "has more than 1024 bytes");
}

static void a_star_that_has_to_be_filled_covers_a_byte_at_least(void **state)
{
    (void)state;
    struct rules_pattern pattern;
    struct rules_captures captures;
    const char *reason;
    assert_true(rules_pattern_parse(SPAN("/a/*/b/**"), &pattern, &reason));
    assert_true(rules_pattern_matches(&pattern, SPAN("/a//b"), &captures));
    pattern.filled = 1 << 0;
    assert_false(rules_pattern_matches(&pattern, SPAN("/a//b"), &captures));
    assert_true(rules_pattern_matches(&pattern, SPAN("/a/x/b"), &captures));
    pattern.filled = 1 << 1;
    assert_false(rules_pattern_matches(&pattern, SPAN("/a/x/b/"), &captures));
    assert_true(rules_pattern_matches(&pattern, SPAN("/a//b/x"), &captures));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_whole_paths_only),
        cmocka_unit_test(two_stars_cover_any_number_of_segments),
        cmocka_unit_test(a_star_that_has_to_be_filled_covers_a_byte_at_least),
        cmocka_unit_test(refuses_what_no_path_can_be),
        cmocka_unit_test(refuses_a_pattern_that_is_too_long),
    };
    return cmocka_run_group_tests_name("rules/pattern", tests, NULL, NULL);
}
