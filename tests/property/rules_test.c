/* SPDX-License-Identifier: MIT
 *
 * Random patterns and paths. A second matcher, which tries every way to split a path, must agree.
 * What the stars cover, put in their places, gives the path again. A redirect leads to the host of
 * its target, whatever the path has. An index changes no decision.
 */
#include "rules/rules.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROUNDS = 100 * 1000, TEXT_MAX = 64 };

static struct random_source random_bits;

/* ---- the second matcher ---- */

static bool model_segment(struct span pattern, struct span segment)
{
    if (pattern.len == 0)
        return segment.len == 0;
    if (pattern.at[0] == '*')
        return model_segment(span_skip(pattern, 1), segment) ||
               (segment.len > 0 && model_segment(pattern, span_skip(segment, 1)));
    return segment.len > 0 && pattern.at[0] == segment.at[0] &&
           model_segment(span_skip(pattern, 1), span_skip(segment, 1));
}

/* Both begin with a slash, or are at their end. */
static struct span model_first(struct span path)
{
    struct span rest = span_skip(path, 1);
    const char *slash = rest.len > 0 ? memchr(rest.at, '/', rest.len) : NULL;
    return span_first(rest, slash ? (size_t)(slash - rest.at) : rest.len);
}

static bool model_path(struct span pattern, struct span path)
{
    if (pattern.len == 0)
        return path.len == 0;
    const struct span wanted = model_first(pattern);
    const struct span behind = span_skip(pattern, wanted.len + 1);
    const struct span left = path.len > 0 ? span_skip(path, model_first(path).len + 1) : path;
    if (span_equal(wanted, SPAN("**")))
        return model_path(behind, path) || (path.len > 0 && model_path(pattern, left));
    return path.len > 0 && model_segment(wanted, model_first(path)) && model_path(behind, left);
}

/* ---- random texts ---- */

static struct span make_text(char *out, const char *const *pieces, size_t kinds, size_t most)
{
    size_t len = 0;
    out[len++] = '/';
    for (size_t count = random_below(&random_bits, most); count > 0; count--) {
        struct span piece = span_text(pieces[random_below(&random_bits, kinds)]);
        if (out[len - 1] == '/' && piece.at[0] == '/')
            continue;
        memcpy(out + len, piece.at, piece.len);
        len += piece.len;
    }
    return span_of(out, len);
}

static struct span make_path(char *out)
{
    static const char *const pieces[] = { "/", "/", "a", "b", "ab" };
    return make_text(out, pieces, sizeof(pieces) / sizeof(pieces[0]), 12);
}

static bool make_pattern(char *out, struct rules_pattern *ret_pattern)
{
    static const char *const pieces[] = { "/", "/", "a", "b", "ab", "*", "*", "/**", "/**/" };
    const char *reason;
    return rules_pattern_parse(make_text(out, pieces, sizeof(pieces) / sizeof(pieces[0]), 9),
                               ret_pattern, &reason);
}

/* The pattern, with the parts for its stars, is the path, or the path and a slash. */
static void check_parts(const struct rules_pattern *pattern, const struct rules_captures *captures,
                        struct span path)
{
    char bytes[4 * TEXT_MAX];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_target target;
    const char *reason;
    assert_true(rules_target_parse_rewrite(pattern->text, &target, &reason));
    assert_int_equal(target.stars, pattern->stars);
    rules_target_add_path(&target, captures, &out);
    struct span joined = buf_span(&out);
    if (joined.len == path.len + 1 && span_ends(joined, SPAN("/")))
        joined.len--;
    if (!span_equal(joined, path))
        fail_msg("`%.*s` gives `%.*s` for `%.*s`", (int)pattern->text.len, pattern->text.at,
                 (int)out.len, out.at, (int)path.len, path.at);
}

static void agrees_with_a_matcher_that_tries_everything(void **state)
{
    (void)state;
    char pattern_text[TEXT_MAX], path_text[TEXT_MAX];
    unsigned covered = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct rules_pattern pattern;
        struct rules_captures captures;
        struct span path = make_path(path_text);
        if (!make_pattern(pattern_text, &pattern))
            continue;
        bool matches = rules_pattern_matches(&pattern, path, &captures);
        if (matches != model_path(pattern.text, path))
            fail_msg("`%.*s` and `%.*s`: %d", (int)pattern.text.len, pattern.text.at, (int)path.len,
                     path.at, matches);
        if (matches)
            check_parts(&pattern, &captures, path);
        covered += matches;
    }
    assert_true(covered > ROUNDS / 100);
}

static bool is_printable(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f || text.at[i] == '\\')
            return false;
    return true;
}

static void a_redirect_never_leaves_the_host_of_its_target(void **state)
{
    (void)state;
    static const char *const targets[] = { "/*",
                                           "/**",
                                           "/x**",
                                           "/*/**",
                                           "/a?q=*",
                                           "/#*",
                                           "https://a.example/**",
                                           "https://a.example?*",
                                           "http://a.example:80/*/x#*" };
    static const char bytes[] = "//\\\\:@?#%.\r\n\t \x7f\xc3\xa9"
                                "ab";
    for (int i = 0; i < ROUNDS; i++) {
        char parts[2][16], location_text[1024];
        struct rules_captures captures = { 0 };
        struct rules_target target;
        const char *reason;
        for (size_t k = 0; k < 2; k++) {
            size_t len = random_below(&random_bits, sizeof(parts[k]));
            for (size_t n = 0; n < len; n++)
                parts[k][n] = bytes[random_below(&random_bits, sizeof(bytes) - 1)];
            captures.part[k] = span_of(parts[k], len);
        }
        const char *text = targets[random_below(&random_bits, sizeof(targets) / sizeof(char *))];
        assert_true(rules_target_parse_redirect(span_text(text), &target, &reason));
        struct buf out = buf_over(location_text, sizeof(location_text));
        rules_target_add_location(&target, &captures, true, SPAN("q"), &out);
        struct span location = buf_span(&out), rest = span_skip(location, target.origin_len);
        assert_true(is_printable(location));
        assert_true(span_starts(location, span_first(target.text, target.origin_len)));
        assert_true(rest.at[0] == '/' || rest.at[0] == '?' || rest.at[0] == '#');
        assert_false(span_starts(rest, SPAN("//")));
    }
}

/* ---- lists of rules ---- */

enum { LISTS = 300, PATHS = 300, LISTED_MAX = 260, INDEX_WORDS = 4096 };

static char list_text[LISTED_MAX][TEXT_MAX];

static unsigned make_list(struct rules_rule *rule, size_t first)
{
    static const struct rules_field field[] = { { .name = SPAN("A"), .line = SPAN("A: b\r\n") } };
    const unsigned count = (unsigned)random_below(&random_bits, LISTED_MAX / 2);
    for (unsigned i = 0; i < count; i++) {
        rule[i] = (struct rules_rule){
            .fields = field,
            .field_count = random_below(&random_bits, 2),
            .auth = (enum rules_choice)random_below(&random_bits, 3),
            .action = random_one_in(&random_bits, 4) ? RULES_STATUS : RULES_SERVE,
        };
        while (!make_pattern(list_text[first + i], &rule[i].pattern))
            continue;
    }
    return count;
}

static void use_index(struct rules *rules)
{
    static uint64_t storage[INDEX_WORDS];
    memset(storage, 0, sizeof(storage));
    assert_true(rules_index_storage(rules) <= sizeof(storage));
    rules_use_index(rules, storage);
}

static bool finds_the_same(const struct rules *with, const struct rules *without, struct span path)
{
    struct rules_match one, two;
    rules_find(with, path, &one);
    rules_find(without, path, &two);
    if (memcmp(one.bits, two.bits, sizeof(one.bits)) != 0 || one.actor != two.actor ||
        one.last != two.last || rules_keeper(with, path) != rules_keeper(without, path))
        return false;
    for (unsigned star = 0; one.actor && star < one.actor->pattern.stars; star++)
        if (!span_equal(one.captures.part[star], two.captures.part[star]))
            return false;
    return true;
}

static void an_index_changes_no_decision(void **state)
{
    (void)state;
    static struct rules_rule rule[LISTED_MAX / 2], list[LISTED_MAX / 2];
    char path_text[TEXT_MAX];
    unsigned acted = 0;
    for (int i = 0; i < LISTS; i++) {
        const struct rules without = { .rule = rule,
                                       .count = make_list(rule, 0),
                                       .list = list,
                                       .list_count = make_list(list, LISTED_MAX / 2) };
        struct rules with = without;
        use_index(&with);
        for (int k = 0; k < PATHS; k++) {
            struct rules_match match;
            const struct span path = k == 0 ? SPAN("") : make_path(path_text);
            if (!finds_the_same(&with, &without, path))
                fail_msg("`%.*s` and %u + %u rules", (int)path.len, path.at, with.count,
                         with.list_count);
            rules_find(&with, path, &match);
            acted += match.actor != NULL;
        }
    }
    assert_true(acted > LISTS * PATHS / 100);
}

static int set_up(void **state)
{
    (void)state;
    random_bits = random_start();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_matcher_that_tries_everything),
        cmocka_unit_test(a_redirect_never_leaves_the_host_of_its_target),
        cmocka_unit_test(an_index_changes_no_decision),
    };
    return cmocka_run_group_tests_name("rules", tests, set_up, NULL);
}
