/* SPDX-License-Identifier: MIT
 *
 * The decisions about compression, and its budget of CPU time.
 */
#include "site/compress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)
#define NOW_NS    (1000 * SECOND_NS)

static void text_and_uncompressed_formats_are_compressed(void **state)
{
    (void)state;
    static const char *const types[] = {
        "text/html; charset=utf-8",
        "text/css; charset=utf-8",
        "text/plain",
        "text/javascript; charset=utf-8",
        "application/json",
        "application/manifest+json",
        "application/atom+xml",
        "image/svg+xml; charset=utf-8",
        "application/wasm",
        "font/ttf",
        "APPLICATION/JSON",
        "application/xml ; charset=utf-8",
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (!site_compress_suits(span_text(types[i]), 5000))
            fail_msg("%s", types[i]);
}

static void compressed_and_unknown_formats_are_not(void **state)
{
    (void)state;
    static const char *const types[] = {
        "application/octet-stream", "image/png", "image/jpeg",      "video/mp4", "font/woff2",
        "application/gzip",         "",          "application/zip", "texts/x",   "application/pdf",
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (site_compress_suits(span_text(types[i]), 5000))
            fail_msg("%s", types[i]);
}

static void small_and_very_large_files_are_not(void **state)
{
    (void)state;
    const struct span type = SPAN("text/html");
    assert_false(site_compress_suits(type, 0));
    assert_false(site_compress_suits(type, SITE_COMPRESS_LEAST - 1));
    assert_true(site_compress_suits(type, SITE_COMPRESS_LEAST));
    assert_true(site_compress_suits(type, SITE_COMPRESS_MOST));
    assert_false(site_compress_suits(type, (uint64_t)SITE_COMPRESS_MOST + 1));
}

static void a_variant_saves_at_least_a_sixteenth(void **state)
{
    (void)state;
    assert_int_equal(site_compress_largest(1024), 960);
    assert_int_equal(site_compress_largest(1600), 1500);
    assert_int_equal(site_compress_largest(SITE_COMPRESS_MOST), 7864320);
}

static void large_files_have_faster_levels(void **state)
{
    (void)state;
    assert_int_equal(site_compress_level(SITE_BR, 1 << 20), 11);
    assert_int_equal(site_compress_level(SITE_BR, (1 << 20) + 1), 9);
    assert_int_equal(site_compress_level(SITE_ZSTD, 1 << 20), 19);
    assert_int_equal(site_compress_level(SITE_ZSTD, (1 << 20) + 1), 12);
    assert_int_equal(site_compress_level(SITE_GZIP, 1 << 20), 9);
}

static void a_budget_begins_with_what_a_minute_gives(void **state)
{
    (void)state;
    struct site_compress_budget budget = site_compress_budget_of(25, NOW_NS);
    assert_int_equal(budget.left_ns, 15 * SECOND_NS);
    site_compress_budget_spend(&budget, 15 * SECOND_NS - 1);
    assert_int_equal(site_compress_budget_wait_ns(&budget, NOW_NS), 0);
    site_compress_budget_spend(&budget, 1);
    assert_true(site_compress_budget_wait_ns(&budget, NOW_NS) > 0);
}

static void a_used_budget_says_how_long_to_wait(void **state)
{
    (void)state;
    struct site_compress_budget budget = site_compress_budget_of(10, NOW_NS);
    site_compress_budget_spend(&budget, 7 * SECOND_NS); /* 1 s of debt */
    const uint64_t wait_ns = site_compress_budget_wait_ns(&budget, NOW_NS);
    assert_in_range(wait_ns, 10 * SECOND_NS, 11 * SECOND_NS);
    assert_true(site_compress_budget_wait_ns(&budget, NOW_NS + 10 * SECOND_NS) > 0);
    assert_int_equal(site_compress_budget_wait_ns(&budget, NOW_NS + wait_ns), 0);
}

static void a_budget_never_holds_more_than_a_minute_gives(void **state)
{
    (void)state;
    struct site_compress_budget budget = site_compress_budget_of(100, NOW_NS);
    site_compress_budget_spend(&budget, 30 * SECOND_NS);
    assert_int_equal(site_compress_budget_wait_ns(&budget, UINT64_MAX / 2), 0);
    assert_int_equal(budget.left_ns, 60 * SECOND_NS);
    budget = site_compress_budget_of(1, NOW_NS);
    site_compress_budget_spend(&budget, 3600 * SECOND_NS);
    assert_int_equal(site_compress_budget_wait_ns(&budget, UINT64_MAX / 2), 0);
    assert_int_equal(budget.left_ns, SECOND_NS * 6 / 10);
}

static void the_share_of_cpu_is_kept_over_time(void **state)
{
    (void)state;
    struct site_compress_budget budget = site_compress_budget_of(25, NOW_NS);
    uint64_t now_ns = NOW_NS, spent_ns = 0;
    while (now_ns < NOW_NS + 3600 * SECOND_NS) {
        const uint64_t wait_ns = site_compress_budget_wait_ns(&budget, now_ns);
        now_ns += wait_ns;
        if (wait_ns > 0)
            continue;
        site_compress_budget_spend(&budget, SECOND_NS / 3);
        spent_ns += SECOND_NS / 3;
        now_ns += SECOND_NS / 3;
    }
    assert_in_range(spent_ns, 890 * SECOND_NS, 920 * SECOND_NS);
}

static void a_clock_that_stands_or_runs_back_gives_nothing(void **state)
{
    (void)state;
    struct site_compress_budget budget = site_compress_budget_of(25, NOW_NS);
    assert_int_equal(site_compress_budget_wait_ns(&budget, NOW_NS - SECOND_NS), 0);
    assert_int_equal(budget.left_ns, 15 * SECOND_NS);
    assert_int_equal(budget.at_ns, NOW_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_uncompressed_formats_are_compressed),
        cmocka_unit_test(compressed_and_unknown_formats_are_not),
        cmocka_unit_test(small_and_very_large_files_are_not),
        cmocka_unit_test(a_variant_saves_at_least_a_sixteenth),
        cmocka_unit_test(large_files_have_faster_levels),
        cmocka_unit_test(a_budget_begins_with_what_a_minute_gives),
        cmocka_unit_test(a_used_budget_says_how_long_to_wait),
        cmocka_unit_test(a_budget_never_holds_more_than_a_minute_gives),
        cmocka_unit_test(the_share_of_cpu_is_kept_over_time),
        cmocka_unit_test(a_clock_that_stands_or_runs_back_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
