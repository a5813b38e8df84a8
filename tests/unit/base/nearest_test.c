/* SPDX-License-Identifier: MIT
 *
 * The distance between names, and which of them is offered for a slip.
 */
#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void counts_the_slips_between_two_names(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned distance;
    } cases[] = {
        { "", "", 0 },
        { "", "abc", 3 },
        { "listen", "listen", 0 },
        { "listen", "lisen", 1 },
        { "listen", "llisten", 1 },
        { "listen", "listan", 1 },
        { "listen", "litsen", 1 },
        { "cache_size", "CACHE-SIZE", 0 },
        { "kitten", "sitting", 3 },
        { "abc", "ca", 3 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span a = span_text(cases[i].a), b = span_text(cases[i].b);
        unsigned there = nearest_distance(a, b), back = nearest_distance(b, a);
        if (there != cases[i].distance || back != there)
            fail_msg("%s, %s: %u and %u, expected %u", a.at, b.at, there, back, cases[i].distance);
    }
}

static void suggests_the_probable_name(void **state)
{
    (void)state;
    static const char *const names[] = { "listen",          "listing",  "model",
                                         "precompressed",   "s-maxage", "max-age",
                                         "tls-certificate", "user",     NULL };
    static const struct {
        const char *wanted, *best;
    } cases[] = {
        { "lisen", "listen" },
        { "listin", "listing" },
        { "Listen", "listen" },
        { "modle", "model" },
        { "precomp", "precompressed" },
        { "usr", "user" },
        { "certificate", "tls-certificate" },
        { "Certificate", "tls-certificate" },
        { "ificate", NULL },
        { "maxage", "max-age" },
        { "completely-else", NULL },
        { "", NULL },
        { "x", NULL },
        { "ab", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *best = nearest_of(span_text(cases[i].wanted), names);
        const char *expected = cases[i].best;
        if (best != expected && (!best || !expected || strcmp(best, expected) != 0))
            fail_msg("`%s`: `%s`, expected `%s`", cases[i].wanted, best ? best : "nothing",
                     expected ? expected : "nothing");
    }
}

static void a_very_long_name_has_no_suggestion(void **state)
{
    (void)state;
    char name[4000];
    memset(name, 'l', sizeof(name));
    static const char *const names[] = { "listen", NULL };
    assert_null(nearest_of(span_of(name, sizeof(name)), names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_the_slips_between_two_names),
        cmocka_unit_test(suggests_the_probable_name),
        cmocka_unit_test(a_very_long_name_has_no_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
