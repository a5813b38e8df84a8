/* SPDX-License-Identifier: MIT
 *
 * Which rules of a site cover a path, in which order they apply, and what they add to an answer.
 */
#include "rules/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SET(name, value) \
    { \
        SPAN(name), SPAN(name ": " value "\r\n"), false, false \
    }
#define ALWAYS(name, value) \
    { \
        SPAN(name), SPAN(name ": " value "\r\n"), true, false \
    }
#define REMOVED(name) \
    { \
        SPAN(name), { "", 0 }, false, false \
    }

#define JOINED(name, value) \
    { \
        SPAN(name), SPAN(name ": " value "\r\n"), false, true \
    }
#define TAKEN_AWAY(name) \
    { \
        SPAN(name), { "", 0 }, false, true \
    }

static const struct rules_field own[] = { ALWAYS("A", "site"), ALWAYS("B", "site"),
                                          SET("Cache-Control", "max-age=9") };
static const struct rules_field first[] = { SET("a", "first"), SET("C", "1"), SET("C", "2") };
static const struct rules_field second[] = { REMOVED("b"), SET("D", "1"), REMOVED("D"),
                                             SET("D", "2") };
static const struct rules_field third[] = { ALWAYS("C", "third"), ALWAYS("Cache-Control", "no") };

static struct rules_rule rule[] = {
    { .fields = own, .field_count = 3 },
    { .fields = first, .field_count = 3, .action = RULES_STATUS, .status = 410 },
    { .fields = second, .field_count = 4, .action = RULES_REDIRECT, .status = 301 },
    { .fields = third, .field_count = 2 },
    { .action = RULES_STATUS, .status = 403 },
};
static const struct rules rules = { .rule = rule, .count = sizeof(rule) / sizeof(rule[0]) };

static int parse_patterns(void **state)
{
    (void)state;
    static const char *const patterns[] = { "/**", "/a/*", "/*/x*", "/**/xy", "/a/xyz" };
    const char *reason;
    for (size_t i = 0; i < rules.count; i++)
        if (!rules_pattern_parse(span_text(patterns[i]), &rule[i].pattern, &reason))
            return -1;
    return 0;
}

static void assert_fields(const char *path, bool is_error, const char *expected)
{
    char bytes[512];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_match match;
    rules_find(&rules, span_text(path), &match);
    rules_add_fields(&rules, &match, is_error, &out);
    if (!span_equal(buf_span(&out), span_text(expected)))
        fail_msg("%s: `%.*s`, expected `%s`", path, (int)out.len, out.at, expected);
    assert_in_range(out.len, 0, rules_fields_most(&rules));
}

static void a_later_rule_replaces_and_removes_the_fields_of_earlier_ones(void **state)
{
    (void)state;
    assert_fields("/", false, "A: site\r\nB: site\r\nCache-Control: max-age=9\r\n");
    assert_fields("", false, "A: site\r\nB: site\r\nCache-Control: max-age=9\r\n");
    assert_fields("/a/b", false,
                  "B: site\r\nCache-Control: max-age=9\r\na: first\r\nC: 1\r\nC: 2\r\n");
    assert_fields("/b/x", false, "A: site\r\nCache-Control: max-age=9\r\nD: 2\r\n");
    assert_fields("/a/x", false,
                  "Cache-Control: max-age=9\r\na: first\r\nC: 1\r\nC: 2\r\nD: 2\r\n");
    assert_fields("/a/xy", false, "a: first\r\nD: 2\r\nC: third\r\nCache-Control: no\r\n");
}

static void errors_have_the_fields_that_are_meant_for_them(void **state)
{
    (void)state;
    assert_fields("/", true, "A: site\r\nB: site\r\n");
    assert_fields("/a/x", true, "A: site\r\nB: site\r\n");
    assert_fields("/a/xy", true, "A: site\r\nB: site\r\nC: third\r\nCache-Control: no\r\n");
}

static void the_last_rule_with_an_action_decides(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int actor; /* -1: none */
        const char *part;
    } rows[] = {
        { "/", -1, NULL },  { "/a/b", 1, "b" },    { "/b/xq", 2, "b" },
        { "/a/x", 2, "a" }, { "/a/xyz", 4, NULL }, { "/q/r/xy", -1, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rules_match match;
        rules_find(&rules, span_text(rows[i].path), &match);
        const struct rules_rule *actor = rows[i].actor < 0 ? NULL : &rule[rows[i].actor];
        if (match.actor != actor)
            fail_msg("%s: another rule decides", rows[i].path);
        if (rows[i].part)
            assert_true(span_equal(match.captures.part[0], span_text(rows[i].part)));
    }
}

static void the_last_rule_with_networks_is_the_gate(void **state)
{
    (void)state;
    static const struct rules_network network = { .admits = true };
    static struct rules_rule some[4];
    static const char *const patterns[] = { "/**", "/a/**", "/a/b/**", "/a/b/c" };
    const struct rules all = { .rule = some, .count = 4 };
    struct rules_match match;
    const char *reason;
    for (size_t i = 0; i < 4; i++) {
        some[i].networks = &network;
        some[i].network_count = i % 2; /* the second and the last have some */
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
    }
    rules_find(&all, SPAN("/b"), &match);
    assert_null(match.gate);
    assert_false(rules_match_is_guarded(&match));
    rules_find(&all, SPAN("/a/b/x"), &match);
    assert_ptr_equal(match.gate, &some[1]);
    assert_true(rules_match_is_guarded(&match));
    rules_find(&all, SPAN("/a/b/c"), &match);
    assert_ptr_equal(match.gate, &some[3]);
}

static void the_last_rule_about_dictionaries_decides_if_it_is_on(void **state)
{
    (void)state;
    static struct rules_rule some[4] = {
        [1] = { .dictionary = RULES_ON, .dictionary_line = SPAN("a line of 18 bytes") },
        [2] = { .dictionary = RULES_OFF },
    };
    static const char *const patterns[] = { "/**", "/a/**", "/a/b/**", "/a/c/**" };
    const struct rules all = { .rule = some, .count = 4 };
    struct rules_match match;
    const char *reason;
    for (size_t i = 0; i < 4; i++)
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
    rules_find(&all, SPAN("/b"), &match);
    assert_null(match.dictionary);
    assert_false(rules_match_is_guarded(&match));
    rules_find(&all, SPAN("/a/c/x"), &match);
    assert_ptr_equal(match.dictionary, &some[1]);
    assert_true(rules_match_is_guarded(&match));
    rules_find(&all, SPAN("/a/b/x"), &match);
    assert_null(match.dictionary);
    assert_int_equal(rules_fields_most(&all), 18);
}

static void the_line_for_an_origin_is_that_of_the_last_rule_about_origins(void **state)
{
    (void)state;
    static const struct rules_origin origins[] = { { SPAN("https://a"), SPAN("A: a\r\n") },
                                                   { SPAN("https://b"), SPAN("A: b\r\n") } };
    static struct rules_rule some[2];
    static const char *const patterns[] = { "/**", "/none/**" };
    const struct rules all = { .rule = some, .count = 2 };
    struct rules_match match;
    char bytes[64];
    struct buf out = buf_over(bytes, sizeof(bytes));
    const char *reason;
    for (size_t i = 0; i < 2; i++) {
        some[i].has_cors = true;
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
    }
    some[0].origins = origins;
    some[0].origin_count = 2;
    some[0].preflight = SPAN("P: 1\r\n");
    rules_find(&all, SPAN("/x"), &match);
    assert_true(span_equal(rules_origin_line(match.cors, SPAN("https://b")), SPAN("A: b\r\n")));
    assert_int_equal(rules_origin_line(match.cors, SPAN("https://c")).len, 0);
    assert_int_equal(rules_origin_line(match.cors, SPAN("")).len, 0);
    assert_int_equal(rules_origin_line(NULL, SPAN("https://b")).len, 0);
    rules_add_fields(&all, &match, true, &out);
    assert_true(span_equal(buf_span(&out), SPAN("Vary: Origin\r\n")));
    rules_find(&all, SPAN("/none/x"), &match);
    assert_ptr_equal(match.cors, &some[1]);
    assert_int_equal(rules_origin_line(match.cors, SPAN("https://b")).len, 0);
    out.len = 0;
    rules_add_fields(&all, &match, false, &out);
    assert_int_equal(out.len, 0);
    assert_int_equal(rules_fields_most(&all), strlen("Vary: Origin\r\nA: a\r\nP: 1\r\n"));
}

/* 3 rules of 64 apart: each word of the bits has one. */
static void the_digest_tells_sets_of_rules_apart(void **state)
{
    (void)state;
    static struct rules_rule many[130];
    static const struct rules_field field[] = { SET("X", "1") };
    static const char *const patterns[] = { "/a*", "/*b*", "/*c" };
    static const char *const paths[] = { "/", "/a", "/b", "/c", "/ab", "/ac", "/bc", "/abc" };
    const struct rules all = { .rule = many, .count = 130 };
    char digest[8][RULES_DIGEST_MAX];
    const char *reason;
    for (size_t i = 0; i < 130; i++) {
        const char *pattern = i % 64 == 1 ? patterns[i / 64] : "/never";
        many[i].fields = field;
        many[i].field_count = 1;
        assert_true(rules_pattern_parse(span_text(pattern), &many[i].pattern, &reason));
    }
    for (size_t i = 0; i < 8; i++) {
        struct rules_match match;
        struct buf out = buf_over(digest[i], RULES_DIGEST_MAX);
        rules_find(&all, span_text(paths[i]), &match);
        rules_add_digest(&all, &match, &out);
        assert_int_equal(out.len, 48);
        assert_false(out.overflow);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digest[i], digest[k], 48);
        assert_int_equal(rules_match_has(&match, 129), strchr(paths[i], 'c') != NULL);
    }
    assert_int_equal(rules_fields_most(&all), sizeof("X: 1\r\n") - 1);
}

static void the_most_bytes_are_those_of_the_longest_lines_of_each_name(void **state)
{
    (void)state;
    static const struct rules_field x[] = { SET("X", "1"), SET("X", "2"), SET("Y", "123456789") };
    static const struct rules_field y[] = { SET("x", "123456789012"), SET("y", "1") };
    static const struct rules_rule two[] = { { .fields = x, .field_count = 3 },
                                             { .fields = y, .field_count = 2 } };
    const struct rules both = { .rule = two, .count = 2 };
    assert_int_equal(rules_fields_most(&both), strlen("x: 123456789012\r\nY: 123456789\r\n"));
}

/* Reads the patterns of rules, which have the same places. */
static void set_patterns(struct rules_rule *rules_of_test, const char *const *patterns,
                         size_t count)
{
    const char *reason;
    for (size_t i = 0; i < count; i++)
        if (!rules_pattern_parse(span_text(patterns[i]), &rules_of_test[i].pattern, &reason))
            fail_msg("`%s` %s", patterns[i], reason);
}

static void fields_that_join_replace_those_that_do_not(void **state)
{
    (void)state;
    static const struct rules_field site[] = { SET("A", "site") };
    static const struct rules_field one[] = { JOINED("A", "1"), JOINED("B", "1"),
                                              JOINED("C", "1") };
    static const struct rules_field two[] = { TAKEN_AWAY("B"), JOINED("a", "2"), JOINED("C", "1") };
    static const struct rules_field last[] = { SET("A", "last") };
    static const char *const patterns[] = { "/**", "/**", "/x/**", "/x/y" };
    static struct rules_rule four[] = { { .fields = site, .field_count = 1 },
                                        { .fields = one, .field_count = 3 },
                                        { .fields = two, .field_count = 3 },
                                        { .fields = last, .field_count = 1 } };
    static const struct {
        const char *path, *expected;
    } rows[] = {
        { "/", "A: 1\r\nB: 1\r\nC: 1\r\n" },
        { "/x", "A: 1, 2\r\nC: 1\r\n" },
        { "/x/y", "C: 1\r\nA: last\r\n" },
    };
    const struct rules all = { .rule = four, .count = 4 };
    set_patterns(four, patterns, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[256];
        struct buf out = buf_over(bytes, sizeof(bytes));
        struct rules_match match;
        rules_find(&all, span_text(rows[i].path), &match);
        rules_add_fields(&all, &match, false, &out);
        if (!span_equal(buf_span(&out), span_text(rows[i].expected)))
            fail_msg("%s: `%.*s`", rows[i].path, (int)out.len, out.at);
        assert_in_range(out.len, 0, rules_fields_most(&all));
    }
}

static void the_last_rule_about_passwords_is_the_keeper(void **state)
{
    (void)state;
    static struct rules_rule some[] = {
        { .auth = RULES_ON }, { .auth = RULES_OFF }, { .auth = RULES_UNSET }, { .auth = RULES_ON }
    };
    static const char *const patterns[] = { "/**", "/open/**", "/open/x/**", "/**/*.key" };
    static const struct {
        const char *path;
        unsigned keeper;
    } rows[] = {
        { "", 0 }, { "/a", 0 }, { "/open", 1 }, { "/open/x/a", 1 }, { "/open/x/a.key", 3 },
    };
    const struct rules all = { .rule = some, .count = 4 };
    const char *reason;
    for (size_t i = 0; i < 4; i++)
        assert_true(rules_pattern_parse(span_text(patterns[i]), &some[i].pattern, &reason));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rules_keeper(&all, span_text(rows[i].path)) != &some[rows[i].keeper])
            fail_msg("%s has another keeper", rows[i].path);
    const struct rules behind = { .rule = some + 1, .count = 3 };
    assert_null(rules_keeper(&behind, SPAN("/a")));
}

static void a_private_answer_has_no_line_that_opens_shared_caches(void **state)
{
    (void)state;
    static const struct rules_field fields[] = {
        ALWAYS("Cache-Control", "public"),
        ALWAYS("Cache-Control", "max-age=9"),
        ALWAYS("CDN-Cache-Control", "max-age=9"),
    };
    static struct rules_rule one = { .fields = fields, .field_count = 3, .auth = RULES_ON };
    const struct rules all = { .rule = &one, .count = 1 };
    struct rules_match match;
    char bytes[512], digests[2][RULES_DIGEST_MAX];
    const char *reason;
    assert_true(rules_pattern_parse(SPAN("/**"), &one.pattern, &reason));
    rules_find(&all, SPAN("/a"), &match);
    assert_false(match.is_private);
    for (unsigned i = 0; i < 2; i++) {
        struct buf out = buf_over(bytes, sizeof(bytes));
        struct buf digest = buf_over(digests[i], sizeof(digests[i]));
        match.is_private = i == 1;
        rules_add_fields(&all, &match, false, &out);
        rules_add_digest(&all, &match, &digest);
        assert_int_equal(digest.len, 16 + i);
        assert_true(span_equal(buf_span(&out),
                               i == 0 ? SPAN("Cache-Control: public\r\nCache-Control: max-age=9\r\n"
                                             "CDN-Cache-Control: max-age=9\r\n")
                                      : SPAN("Cache-Control: max-age=9\r\n"
                                             "Cache-Control: private\r\n")));
        assert_in_range(out.len, 0, rules_fields_most(&all));
    }
}

static void lines_that_join_count_only_where_their_patterns_meet(void **state)
{
    (void)state;
    static const struct rules_field line[] = { JOINED("A", "12345") }; /* 10 bytes */
    static const char *const patterns[] = { "/**", "/a/**", "/a/b", "/a/bc", "/b/*", "/b/x/*" };
    static struct rules_rule six[6];
    for (size_t i = 0; i < 6; i++)
        six[i] = (struct rules_rule){ .fields = line, .field_count = 1 };
    set_patterns(six, patterns, 6);
    assert_int_equal(rules_joins_most(&(struct rules){ .rule = six, .count = 1 }), 10);
    assert_int_equal(rules_joins_most(&(struct rules){ .rule = six, .count = 3 }), 30);
    assert_int_equal(rules_joins_most(&(struct rules){ .rule = six, .count = 4 }), 30);
    assert_int_equal(rules_joins_most(&(struct rules){ .rule = six, .count = 6 }), 30);
    assert_int_equal(rules_fields_most(&(struct rules){ .rule = six, .count = 6 }), 30);
}

static void the_first_rule_of_the_list_decides_after_all_others(void **state)
{
    (void)state;
    static struct rules_rule one[] = { { .action = RULES_STATUS, .status = 410 } };
    static struct rules_rule list[3];
    static const char *const pattern[] = { "/own" };
    static const char *const patterns[] = { "/a/*", "/a/b", "/**" };
    const struct rules all = { .rule = one, .count = 1, .list = list, .list_count = 3 };
    struct rules_match match;
    for (size_t i = 0; i < 3; i++)
        list[i].action = RULES_REDIRECT;
    set_patterns(one, pattern, 1);
    set_patterns(list, patterns, 3);
    rules_find(&all, SPAN("/own"), &match);
    assert_ptr_equal(match.actor, &one[0]);
    rules_find(&all, SPAN("/a/b"), &match);
    assert_ptr_equal(match.actor, &list[0]);
    assert_true(span_equal(match.captures.part[0], SPAN("b")));
    rules_find(&all, SPAN("/c"), &match);
    assert_ptr_equal(match.actor, &list[2]);
    assert_false(rules_match_has(&match, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_rule_replaces_and_removes_the_fields_of_earlier_ones),
        cmocka_unit_test(errors_have_the_fields_that_are_meant_for_them),
        cmocka_unit_test(the_last_rule_with_an_action_decides),
        cmocka_unit_test(the_last_rule_with_networks_is_the_gate),
        cmocka_unit_test(the_last_rule_about_dictionaries_decides_if_it_is_on),
        cmocka_unit_test(the_line_for_an_origin_is_that_of_the_last_rule_about_origins),
        cmocka_unit_test(the_digest_tells_sets_of_rules_apart),
        cmocka_unit_test(the_most_bytes_are_those_of_the_longest_lines_of_each_name),
        cmocka_unit_test(fields_that_join_replace_those_that_do_not),
        cmocka_unit_test(lines_that_join_count_only_where_their_patterns_meet),
        cmocka_unit_test(the_first_rule_of_the_list_decides_after_all_others),
        cmocka_unit_test(the_last_rule_about_passwords_is_the_keeper),
        cmocka_unit_test(a_private_answer_has_no_line_that_opens_shared_caches),
    };
    return cmocka_run_group_tests_name("rules/rules", tests, parse_patterns, NULL);
}
