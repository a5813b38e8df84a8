/* SPDX-License-Identifier: MIT
 *
 * How patterns relate: a few pairs in words, and all pairs of many small patterns against all
 * small paths.
 */
#include "rules/relation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct rules_pattern parse(const char *text)
{
    struct rules_pattern pattern;
    const char *reason;
    if (!rules_pattern_parse(span_text(text), &pattern, &reason))
        fail_msg("`%s` %s", text, reason);
    return pattern;
}

static void tells_wide_patterns_from_narrow_ones(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool covers, is_covered, meets;
    } rows[] = {
        { "/**", "/", true, false, true },
        { "/**", "/**", true, true, true },
        { "/**", "/a/**", true, false, true },
        { "/a/**", "/a", true, false, true },
        { "/a/**", "/a/", true, false, true },
        { "/a/**", "/a/*", true, false, true },
        { "/a/**", "/a/b/c*.txt", true, false, true },
        { "/a/**", "/ab", false, false, false },
        { "/a/**", "/**/*.css", false, false, true },
        { "/a/**", "/b/**", false, false, false },
        { "/a/*", "/a/b/c", false, false, false },
        { "/a/*", "/a/", true, false, true },
        { "/*", "/**", false, true, true },
        { "/**/", "/a/b/", true, false, true },
        { "/**/", "/a/b", false, false, false },
        { "/**/x", "/a/**/x", true, false, true },
        { "/**/x/**", "/x", true, false, true },
        { "/*.html", "/index.*", false, false, true },
        { "/*a*b*", "/*b*a*", false, false, true },
        { "/*.html", "/*.htm", false, false, false },
        { "/a*/b", "/*c/b", false, false, true },
        { "/a/**/b", "/a/b", true, false, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct rules_pattern a = parse(rows[i].a), b = parse(rows[i].b);
        if (rules_relation_covers(&a, &b) != rows[i].covers ||
            rules_relation_covers(&b, &a) != rows[i].is_covered ||
            rules_relation_meets(&a, &b) != rows[i].meets ||
            rules_relation_meets(&b, &a) != rows[i].meets)
            fail_msg("`%s` and `%s`", rows[i].a, rows[i].b);
    }
}

static void the_longest_patterns_are_compared(void **state)
{
    (void)state;
    char first[RULES_PATTERN_MAX + 1], second[RULES_PATTERN_MAX + 1];
    memset(first, 'a', sizeof(first));
    first[0] = '/';
    first[RULES_PATTERN_MAX] = '\0';
    memcpy(second, first, sizeof(first));
    second[RULES_PATTERN_MAX - 1] = '*';
    const struct rules_pattern a = parse(first), b = parse(second), all = parse("/**");
    assert_true(rules_relation_covers(&b, &a));
    assert_false(rules_relation_covers(&a, &b));
    assert_true(rules_relation_covers(&all, &b));
    assert_true(rules_relation_meets(&a, &b));
}

/* ---- all small patterns and paths ---- */

enum { PATHS_MAX = 1024, PATH_BYTES = 16 };

static char paths[PATHS_MAX][PATH_BYTES];
static size_t path_count;

/* All paths of up to `left` more segments, each of up to two bytes of `ab`. */
static void add_paths(const char *front, unsigned left)
{
    static const char *const segments[] = { "", "a", "b", "aa", "ab", "ba", "bb" };
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
        assert_true(path_count < PATHS_MAX);
        char *path = paths[path_count++];
        (void)snprintf(path, PATH_BYTES, "%s/%s", front, segments[i]);
        if (left > 1 && segments[i][0] != '\0')
            add_paths(path, left - 1);
    }
}

/* The pattern with this number: segments from a small set, at most three. */
static bool pattern_of(unsigned number, char out[64])
{
    static const char *const segments[] = { "a", "*", "**", "a*", "*b", "" };
    const unsigned count = sizeof(segments) / sizeof(segments[0]);
    size_t len = 0;
    for (unsigned i = 0; i < 3; i++, number /= count + 1) {
        const unsigned which = number % (count + 1);
        if (which == count)
            break;
        len += (size_t)snprintf(out + len, 64 - len, "/%s", segments[which]);
        if (segments[which][0] == '\0')
            break;
    }
    return len > 0;
}

static void small_patterns_relate_as_the_paths_that_they_cover(void **state)
{
    (void)state;
    static bool covered[7 * 7 * 7][PATHS_MAX];
    static struct rules_pattern patterns[7 * 7 * 7];
    static char texts[7 * 7 * 7][64];
    unsigned count = 0;
    add_paths("", 3);
    (void)snprintf(paths[path_count++], PATH_BYTES, "%s", "");
    for (unsigned number = 0; number < 7 * 7 * 7; number++) {
        struct rules_captures captures;
        if (!pattern_of(number, texts[count]))
            continue;
        patterns[count] = parse(texts[count]);
        for (size_t i = 0; i < path_count; i++)
            covered[count][i] =
                rules_pattern_matches(&patterns[count], span_text(paths[i]), &captures);
        count++;
    }
    unsigned narrow = 0, apart = 0;
    for (unsigned a = 0; a < count; a += 3)
        for (unsigned b = 0; b < count; b++) {
            bool all = true, any = false;
            for (size_t i = 0; i < path_count; i++) {
                all = all && (covered[a][i] || !covered[b][i]);
                any = any || (covered[a][i] && covered[b][i]);
            }
            const bool covers = rules_relation_covers(&patterns[a], &patterns[b]);
            if (covers && !all)
                fail_msg("`%s` does not cover `%s`", texts[a], texts[b]);
            if (any && !rules_relation_meets(&patterns[a], &patterns[b]))
                fail_msg("`%s` and `%s` share a path", texts[a], texts[b]);
            narrow += covers;
            apart += !rules_relation_meets(&patterns[a], &patterns[b]);
        }
    assert_true(narrow > count);
    assert_true(apart > count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_wide_patterns_from_narrow_ones),
        cmocka_unit_test(the_longest_patterns_are_compared),
        cmocka_unit_test(small_patterns_relate_as_the_paths_that_they_cover),
    };
    return cmocka_run_group_tests_name("rules/relation", tests, NULL, NULL);
}
