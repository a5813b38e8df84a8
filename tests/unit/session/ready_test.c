/* SPDX-License-Identifier: MIT
 *
 * Answers of rules that are made with the configuration: what is in them, and for which paths they
 * are.
 */
#include "session/ready.h"

#include "base/buf.h"
#include "http2/response.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SET(text, value) \
    { \
        .name = SPAN(text), .line = SPAN(text ": " value "\r\n") \
    }
#define END "Content-Length: 0\r\nX-Content-Type-Options: nosniff\r\nServer: weir\r\n\r\n"

enum { OWN, MOVED, FIXED, DEEP, SCRIPTS, OVERRULED, GONE, COUNT };

static const struct rules_field own[] = { SET("X-Own", "1") };
static const struct rules_field moved[] = { SET("X-Moved", "2") };
static const struct rules_field deep[] = { SET("X-Deep", "3") };

static struct rules_rule rule[COUNT] = {
    [OWN] = { .fields = own, .field_count = 1 },
    [MOVED] = { .fields = moved, .field_count = 1, .action = RULES_REDIRECT, .status = 301 },
    [FIXED] = { .action = RULES_REDIRECT, .status = 302 },
    [DEEP] = { .fields = deep, .field_count = 1 },
    [SCRIPTS] = { .has_cors = true, .preflight = SPAN("Access-Control-Max-Age: 60\r\n") },
    [OVERRULED] = { .action = RULES_REDIRECT, .status = 308 },
    [GONE] = { .action = RULES_STATUS, .status = 410 },
};
static struct rules_rule list[] = {
    { .action = RULES_STATUS, .status = 404 },
    { .action = RULES_REDIRECT, .status = 307, .if_absent = true },
};
static const struct rules rules = { .rule = rule, .count = COUNT, .list = list, .list_count = 2 };

static int make_rules(void **state)
{
    (void)state;
    static const char *const patterns[COUNT] = {
        "/**", "/old/**", "/*/fixed", "/old/*/deep", "/api/**", "/late", "/la*",
    };
    const char *reason;
    for (size_t i = 0; i < COUNT; i++)
        if (!rules_pattern_parse(span_text(patterns[i]), &rule[i].pattern, &reason))
            return -1;
    if (!rules_pattern_parse(SPAN("/none"), &list[0].pattern, &reason) ||
        !rules_pattern_parse(SPAN("/listed"), &list[1].pattern, &reason) ||
        !rules_target_parse_redirect(SPAN("/found"), &list[1].target, &reason))
        return -1;
    return rules_target_parse_redirect(SPAN("/new/**"), &rule[MOVED].target, &reason) &&
                   rules_target_parse_redirect(SPAN("https://a.test/b?c"), &rule[FIXED].target,
                                               &reason) &&
                   rules_target_parse_redirect(SPAN("/x"), &rule[OVERRULED].target, &reason)
               ? 0
               : -1;
}

static void assert_text(struct span got, const char *expected)
{
    if (!span_equal(got, span_text(expected)))
        fail_msg("`%.*s`, expected `%s`", (int)got.len, got.at, expected);
}

/* The block has the fields of the lines. */
static void assert_block(struct span block, struct span lines)
{
    char bytes[512];
    struct buf expected = buf_over(bytes, sizeof(bytes));
    http2_response_add_lines(&expected, lines);
    assert_true(span_equal(block, buf_span(&expected)));
}

static void assert_answer(const struct session_ready_answer *answer, unsigned status,
                          const char *front, const char *location, const char *back)
{
    char bytes[HTTP2_RESPONSE_STATUS_MAX];
    struct buf expected = buf_over(bytes, sizeof(bytes));
    http2_response_add_status(&expected, status);
    assert_int_equal(answer->status, status);
    assert_true(span_equal(answer->status_block, buf_span(&expected)));
    assert_text(answer->front, front);
    assert_text(answer->location, location);
    assert_text(answer->back, back);
    assert_block(answer->front_block, answer->front);
    assert_block(answer->location_block, answer->location);
    assert_block(answer->back_block, answer->back);
}

static void a_redirect_has_the_fields_of_all_rules_of_its_paths(void **state)
{
    (void)state;
    struct session_ready_set *set = session_ready_new(&rules, SPAN("Server: weir\r\n"));
    assert_non_null(set);
    const struct session_ready *const ready = set->each;
    assert_answer(&ready[MOVED].redirect, 301, "X-Own: 1\r\nX-Moved: 2\r\n", "", END);
    assert_answer(&ready[FIXED].redirect, 302, "X-Own: 1\r\n", "Location: https://a.test/b?c\r\n",
                  END);
    assert_int_equal(ready[MOVED].preflight.status, 0);
    assert_int_equal(session_ready_place(&rules, &rule[MOVED]), MOVED);
    assert_int_equal(session_ready_place(&rules, &list[0]), COUNT);
    assert_int_equal(ready[COUNT].redirect.status, 0);
    assert_answer(&ready[session_ready_place(&rules, &list[1])].redirect, 307, "X-Own: 1\r\n",
                  "Location: /found\r\n", END);
    session_ready_free(set, &rules);
}

static void a_preflight_has_the_lines_of_its_rule(void **state)
{
    (void)state;
    struct session_ready_set *set = session_ready_new(&rules, SPAN(""));
    assert_non_null(set);
    const struct session_ready *const ready = set->each;
    assert_answer(&ready[SCRIPTS].preflight, 204,
                  "X-Own: 1\r\nAllow: GET, HEAD, OPTIONS\r\nAccess-Control-Max-Age: 60\r\n", "",
                  "X-Content-Type-Options: nosniff\r\n\r\n");
    assert_int_equal(ready[SCRIPTS].redirect.status, 0);
    session_ready_free(set, &rules);
}

static void other_rules_have_no_ready_answer(void **state)
{
    (void)state;
    static const unsigned places[] = { OWN, DEEP, OVERRULED, GONE };
    struct session_ready_set *set = session_ready_new(&rules, SPAN(""));
    assert_non_null(set);
    const struct session_ready *const ready = set->each;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        assert_int_equal(ready[places[i]].redirect.status, 0);
        assert_int_equal(ready[places[i]].preflight.status, 0);
    }
    session_ready_free(set, &rules);
}

static void paths_that_other_rules_cover_need_another_answer(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool fits;
    } rows[] = {
        { "/old", true },         { "/old/", true },       { "/old/a/b", true },
        { "/old/a/deep", false }, { "/old/fixed", false }, { "/api/a", false },
    };
    struct session_ready_set *set = session_ready_new(&rules, SPAN(""));
    assert_non_null(set);
    const struct session_ready *const ready = set->each;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rules_match match;
        rules_find(&rules, span_text(rows[i].path), &match);
        if (session_ready_fits(&ready[MOVED], &match) != rows[i].fits)
            fail_msg("%s", rows[i].path);
    }
    session_ready_free(set, &rules);
}

static void lines_that_are_too_long_are_left_to_each_answer(void **state)
{
    (void)state;
    static char value[20 * 1024];
    memset(value, 'v', sizeof(value));
    const struct rules_field fields[] = { { .name = SPAN("X-Long"),
                                            .line = span_of(value, sizeof(value)) } };
    struct rules_rule long_rule = {
        .fields = fields, .field_count = 1, .action = RULES_REDIRECT, .status = 301
    };
    const struct rules one = { .rule = &long_rule, .count = 1 };
    const char *reason;
    assert_true(rules_pattern_parse(SPAN("/a"), &long_rule.pattern, &reason));
    assert_true(rules_target_parse_redirect(SPAN("/b"), &long_rule.target, &reason));
    memcpy(value, "X-Long: ", 8);
    memcpy(value + sizeof(value) - 2, "\r\n", 2);
    struct session_ready_set *set = session_ready_new(&one, SPAN(""));
    assert_non_null(set);
    const struct session_ready *const ready = set->each;
    assert_int_equal(ready->redirect.status, 0);
    session_ready_free(set, &one);
}

/* Answers of the rules for one path, and paths for which the others may not answer alone. */
static void one_path_leads_to_its_redirect_at_once(void **state)
{
    (void)state;
    enum { RULED = 9 };
    static const char *const patterns[RULED] = { "/a", "/b", "/c/*", "/open", "/e",
                                                 "/f", "/f", "/g",   "/open" };
    static const char *const found[] = { "/a", "/b", "/f" };
    static const char *const others[] = { "/c/x", "/c/*",    "/open", "/e", "/g",
                                          "/x",   "/listed", "/A",    "/" };
    struct rules_rule some[RULED];
    struct rules_rule later[] = { { .action = RULES_REDIRECT, .status = 302, .if_absent = true } };
    const char *reason;
    for (unsigned i = 0; i < RULED; i++) {
        some[i] = (struct rules_rule){ .action = RULES_REDIRECT, .status = 301 };
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
        assert_true(rules_target_parse_redirect(i == 1 ? SPAN("/to?q") : SPAN("/to"),
                                                &some[i].target, &reason));
    }
    const struct rules_network deny = { .admits = false };
    some[3].networks = &deny; /* a client may be denied */
    some[3].network_count = 1;
    some[4].has_cors = true; /* a field depends on the client */
    some[7].action = RULES_SERVE;
    assert_true(rules_pattern_parse(SPAN("/listed"), &later->pattern, &reason));
    assert_true(rules_target_parse_redirect(SPAN("/to"), &later->target, &reason));
    const struct rules all = { .rule = some, .count = RULED, .list = later, .list_count = 1 };
    struct session_ready_set *set = session_ready_new(&all, SPAN(""));
    assert_non_null(set);
    for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
        const struct session_ready *ready = session_ready_find(set, span_text(found[i]));
        assert_non_null(ready);
        assert_text(ready->path, found[i]);
        assert_int_equal(ready->has_query, i == 1);
        assert_int_equal(ready->redirect.status, 301);
    }
    assert_ptr_equal(session_ready_find(set, SPAN("/f")), &set->each[6]); /* the last one decides */
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (session_ready_find(set, span_text(others[i])))
            fail_msg("%s", others[i]);
    assert_null(session_ready_find(set, SPAN("")));
    session_ready_free(set, &all);
}

/* The redirects of some paths with stars, and paths for which other rules matter, too. */
static void a_path_with_a_star_needs_no_other_rule(void **state)
{
    (void)state;
    enum { RULED = 9 };
    static const char *const patterns[RULED] = { "/**",     "/old/*",  "/both/**",
                                                 "/bo*",    "/cors/*", "/net/*",
                                                 "/gone/*", "/plain",  "/full/*" };
    static const struct {
        const char *path;
        int place; /* -1: the rules have to be found */
    } rows[] = {
        { "/old/a", 1 },  { "/old/", 1 },    { "/old/a/b", -1 }, { "/old", -1 },
        { "/olx/a", -1 }, { "/both/a", -1 }, { "/bo", 3 },       { "/cors/a", -1 },
        { "/net/a", -1 }, { "/gone/a", -1 }, { "/plain", 7 },    { "/plai", -1 },
        { "/", -1 },      { "", -1 },        { "/x", -1 },       { "/full/a", 8 },
        { "/full/", -1 },
    };
    static uint64_t storage[1024];
    struct rules_rule some[RULED];
    const struct rules_network deny = { .admits = false };
    const char *reason;
    for (unsigned i = 0; i < RULED; i++) {
        some[i] = (struct rules_rule){ .action = RULES_REDIRECT, .status = 301 };
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
        assert_true(rules_target_parse_redirect(SPAN("/to"), &some[i].target, &reason));
    }
    some[0].action = RULES_SERVE;
    some[4].has_cors = true;
    some[5].networks = &deny;
    some[5].network_count = 1;
    some[6].action = RULES_STATUS;
    some[8].pattern.filled = 1; /* its star covers a byte at least */
    struct rules all = { .rule = some, .count = RULED };
    assert_true(rules_index_storage(&all) <= sizeof(storage));
    rules_use_index(&all, storage);
    struct session_ready_set *set = session_ready_new(&all, SPAN(""));
    assert_non_null(set);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct rules_rule *actor;
        struct rules_captures captures;
        const struct session_ready *ready =
            session_ready_find_alone(set, &all, span_text(rows[i].path), &actor, &captures);
        const int place = ready ? (int)(ready - set->each) : -1;
        if (place != rows[i].place || (ready && actor != &some[place]))
            fail_msg("`%s`: %d", rows[i].path, place);
        if (place == 1)
            assert_text(captures.part[0], rows[i].path + strlen("/old/"));
    }
    session_ready_free(set, &all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirect_has_the_fields_of_all_rules_of_its_paths),
        cmocka_unit_test(a_preflight_has_the_lines_of_its_rule),
        cmocka_unit_test(other_rules_have_no_ready_answer),
        cmocka_unit_test(paths_that_other_rules_cover_need_another_answer),
        cmocka_unit_test(lines_that_are_too_long_are_left_to_each_answer),
        cmocka_unit_test(one_path_leads_to_its_redirect_at_once),
        cmocka_unit_test(a_path_with_a_star_needs_no_other_rule),
    };
    return cmocka_run_group_tests_name("session/ready", tests, make_rules, NULL);
}
