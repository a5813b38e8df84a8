/* SPDX-License-Identifier: MIT
 *
 * Range fields, row by row: the field, the size of the file, and the result.
 * tests/property/range_test.c compares random sets with a model.
 */
#include "http/range.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* `expected` lists the ranges as "first+length first+length". "416" and "200" are the two other
 * results. */
struct row {
    const char *field;
    uint64_t size;
    const char *expected;
};

static enum http_range_result parse(const char *field, uint64_t size, struct http_ranges *ranges)
{
    struct guard guard;
    enum http_range_result result = http_range_parse(guard_text(&guard, field), size, ranges);
    guard_done(&guard);
    return result;
}

static void describe(enum http_range_result result, const struct http_ranges *ranges, char *out,
                     size_t size)
{
    out[0] = '\0';
    if (result == HTTP_RANGE_IGNORE)
        (void)snprintf(out, size, "200");
    if (result == HTTP_RANGE_UNSATISFIABLE)
        (void)snprintf(out, size, "416");
    if (result != HTTP_RANGE_SATISFIABLE)
        return;
    size_t at = 0;
    for (unsigned i = 0; i < ranges->count; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%llu+%llu", i > 0 ? " " : "",
                               (unsigned long long)ranges->range[i].first,
                               (unsigned long long)ranges->range[i].len);
}

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http_ranges ranges = { 0 };
        char got[1024];
        describe(parse(rows[i].field, rows[i].size, &ranges), &ranges, got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("`%s` of %llu: expected %s, got %s", rows[i].field,
                     (unsigned long long)rows[i].size, rows[i].expected, got);
    }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void reads_one_range(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=0-0", 1000, "0+1" },       { "bytes=0-", 1000, "0+1000" },
        { "bytes=-1", 1000, "999+1" },      { "bytes=999-", 1000, "999+1" },
        { "bytes=0-999", 1000, "0+1000" },  { "bytes=0-5000", 1000, "0+1000" },
        { "bytes=-5000", 1000, "0+1000" },  { "bytes=-1000", 1000, "0+1000" },
        { "bytes=500-500", 1000, "500+1" }, { "bytes=007-010", 1000, "7+4" },
        { "bytes=0-0", 1, "0+1" },          { "bytes=-1", 1, "0+1" },
    };
    CHECK_ROWS(rows);
}

static void finds_a_range_behind_the_end_unsatisfiable(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=1000-", 1000, "416" },     { "bytes=5000-6000", 1000, "416" },
        { "bytes=-0", 1000, "416" },        { "bytes=-000", 1000, "416" },
        { "bytes=1000-1000", 1000, "416" }, { "bytes=1000-,-0", 1000, "416" },
    };
    CHECK_ROWS(rows);
}

static void ignores_what_is_malformed(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes= , ,",
        "bytes=5-1",
        "bytes=a-b",
        "bytes=1",
        "bytes=-",
        "bytes=--1",
        "bytes=0-1-2",
        "bytes=0x1-2",
        "0-1",
        "lines=0-1",
        "bytes 0-1",
        "bytes:0-1",
        "bytes =0-1",
        "bytes=0 -1",
        "bytes=0- 1",
        "bytes=+0-1",
        "bytes=0-+1",
        "bytes=1e1-20",
        "bytes=\"0-1\"",
        "bytes=0-1;q=1",
        "bytes==0-1",
        "bytes=0-1/9",
        "bytes=\xd9\xa3-9",
        "bytes=0_0-9",
        "bytes=0-1 2-3",
        "byte=0-1",
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct row row = { fields[i], 1000, "200" };
        check_rows(&row, 1);
    }
}

static void ignores_a_field_with_one_malformed_range(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=0-1,5-1", 1000, "200" },
        { "bytes=x,0-1", 1000, "200" },
        { "bytes=1000-,9-1", 1000, "200" },
    };
    CHECK_ROWS(rows);
}

static void reads_the_unit_in_any_case_and_a_list_with_spaces(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "BYTES=0-1", 1000, "0+2" },
        { "Bytes=0-1", 1000, "0+2" },
        { "bytes= 0-1", 1000, "0+2" },
        { "bytes=0-1 ,\t5-6", 1000, "0+2 5+2" },
        { "bytes=,0-1,,5-6,", 1000, "0+2 5+2" },
    };
    CHECK_ROWS(rows);
}

static void clamps_numbers_above_64_bits(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=18446744073709551615-", 1000, "416" },
        { "bytes=18446744073709551616-", 1000, "416" },
        { "bytes=-18446744073709551616", 1000, "0+1000" },
        { "bytes=-18446744073709551615", 1000, "0+1000" },
        { "bytes=0-99999999999999999999", 1000, "0+1000" },
        { "bytes=9223372036854775807-9223372036854775808", 1000, "416" },
        { "bytes=9223372036854775807-", UINT64_MAX, "9223372036854775807+9223372036854775808" },
        { "bytes=18446744073709551614-", UINT64_MAX, "18446744073709551614+1" },
        { "bytes=18446744073709551615-", UINT64_MAX, "416" },
        { "bytes=0-", UINT64_MAX, "0+18446744073709551615" },
        { "bytes=00000000000000000000000000001-2", 1000, "1+2" },
        { "bytes=184467440737095516160-184467440737095516170", 1000, "416" },
    };
    CHECK_ROWS(rows);
}

static void keeps_the_requested_order_of_ranges(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=0-0,-1", 1000, "0+1 999+1" },     { "bytes=-1,0-0", 1000, "999+1 0+1" },
        { "bytes=20-29,0-9", 1000, "20+10 0+10" }, { "bytes=0-9,20-29,5000-", 1000, "0+10 20+10" },
        { "bytes=5000-,0-9,-0", 1000, "0+10" },
    };
    CHECK_ROWS(rows);
}

static void merges_ranges_that_overlap_or_touch(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=0-9,5-14", 1000, "0+15" },
        { "bytes=0-9,10-19", 1000, "0+20" },
        { "bytes=10-19,0-9", 1000, "0+20" },
        { "bytes=0-9,11-19", 1000, "0+10 11+9" },
        { "bytes=0-9,0-9,0-9", 1000, "0+10" },
        { "bytes=0-99,10-19", 1000, "0+100" },
        { "bytes=10-19,0-99", 1000, "0+100" },
        { "bytes=0-9,90-99,20-29,10-19", 1000, "0+30 90+10" },
        { "bytes=20-29,90-99,0-9,40-49,10-39", 1000, "0+50 90+10" },
        { "bytes=50-59,0-9,70-79,0-", 1000, "0+1000" },
        { "bytes=-500,0-499", 1000, "0+1000" },
    };
    CHECK_ROWS(rows);
}

static void an_empty_file_has_no_range(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "bytes=0-0", 0, "416" }, { "bytes=0-", 0, "416" },    { "bytes=-0", 0, "416" },
        { "bytes=-5", 0, "200" },  { "bytes=0-,-5", 0, "200" },
    };
    CHECK_ROWS(rows);
}

/* `count` ranges of one byte each, `step` apart, largest first. */
static void make_field(char *out, size_t size, unsigned count, unsigned step)
{
    size_t at = (size_t)snprintf(out, size, "bytes=");
    for (unsigned i = count; i > 0; i--)
        at += (size_t)snprintf(out + at, size - at, "%u-%u,", i * step, i * step);
}

static void ignores_more_ranges_than_the_limit(void **state)
{
    (void)state;
    char field[64 * 1024];
    struct http_ranges ranges;

    make_field(field, sizeof field, HTTP_RANGES_MAX, 2);
    assert_int_equal(parse(field, 1000, &ranges), HTTP_RANGE_SATISFIABLE);
    assert_int_equal(ranges.count, HTTP_RANGES_MAX);
    make_field(field, sizeof field, HTTP_RANGES_MAX + 1, 2);
    assert_int_equal(parse(field, 1000, &ranges), HTTP_RANGE_IGNORE);

    /* Ranges are merged before they are counted, and the limit of reading comes before both. */
    make_field(field, sizeof field, HTTP_RANGES_READ_MAX, 1);
    assert_int_equal(parse(field, 1000, &ranges), HTTP_RANGE_SATISFIABLE);
    assert_int_equal(ranges.count, 1);
    make_field(field, sizeof field, HTTP_RANGES_READ_MAX + 1, 1);
    assert_int_equal(parse(field, 1000, &ranges), HTTP_RANGE_IGNORE);
    make_field(field, sizeof field, 2000, 2);
    assert_int_equal(parse(field, 100000, &ranges), HTTP_RANGE_IGNORE);
}

static void writes_nothing_unless_satisfiable(void **state)
{
    (void)state;
    static const char *const fields[] = { "bytes=0-1,x", "bytes=2000-", "lines=0-1", "bytes=-0" };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct http_ranges ranges;
        struct http_ranges before;
        memset(&ranges, 0x5a, sizeof ranges);
        memset(&before, 0x5a, sizeof before);
        assert_int_not_equal(parse(fields[i], 1000, &ranges), HTTP_RANGE_SATISFIABLE);
        assert_memory_equal(&ranges, &before, sizeof ranges);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_one_range),
        cmocka_unit_test(finds_a_range_behind_the_end_unsatisfiable),
        cmocka_unit_test(ignores_what_is_malformed),
        cmocka_unit_test(ignores_a_field_with_one_malformed_range),
        cmocka_unit_test(reads_the_unit_in_any_case_and_a_list_with_spaces),
        cmocka_unit_test(clamps_numbers_above_64_bits),
        cmocka_unit_test(keeps_the_requested_order_of_ranges),
        cmocka_unit_test(merges_ranges_that_overlap_or_touch),
        cmocka_unit_test(an_empty_file_has_no_range),
        cmocka_unit_test(ignores_more_ranges_than_the_limit),
        cmocka_unit_test(writes_nothing_unless_satisfiable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
