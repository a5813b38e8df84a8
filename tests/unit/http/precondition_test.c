/* SPDX-License-Identifier: MIT
 *
 * Conditional requests: real heads through the real parser, against a file with
 * the tag "own" that was modified on 6 November 1994 at 08:49:37.
 */
#include "http/precondition.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW           INT64_C(1704067200)
#define MODIFIED      INT64_C(784111777)
#define MODIFIED_TEXT "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE_TEXT   "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER_TEXT    "Sun, 06 Nov 1994 08:49:38 GMT"
#define FUTURE_TEXT   "Thu, 31 Dec 2099 00:00:00 GMT"

static const struct http_validators own = {
    .etag = { "\"own\"", 5 },
    .modified_s = MODIFIED,
};

struct row {
    const char *fields; /* lines with their CRLF */
    enum http_precondition expected;
};

static enum http_precondition evaluate(const char *fields, struct http_validators current,
                                       int64_t now_s)
{
    static char head[HTTP_HEAD_MAX + 1];
    int len = snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    assert_in_range(len, 1, HTTP_HEAD_MAX);

    struct guard guard;
    struct span bytes = guard_text(&guard, head);
    struct http_request request = { 0 };
    enum http_status status = HTTP_OK;
    assert_int_equal(http_request_parse(&request, bytes, &status), HTTP_PARSED);
    enum http_precondition got = http_precondition_evaluate(&request, bytes.at, current, now_s);
    guard_done(&guard);
    return got;
}

static void check_rows(const struct row *rows, size_t count, struct http_validators current)
{
    for (size_t i = 0; i < count; i++) {
        enum http_precondition got = evaluate(rows[i].fields, current, NOW);
        if (got != rows[i].expected)
            fail_msg("`%s`: expected %d, got %d", rows[i].fields, (int)rows[i].expected, (int)got);
    }
}

#define CHECK_ROWS(rows, current) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), current)

static void proceeds_without_a_condition(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "", HTTP_PROCEED },
        { "Range: bytes=0-1\r\n", HTTP_PROCEED },
    };
    CHECK_ROWS(rows, own);
}

static void if_none_match_compares_weakly(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-None-Match: \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: W/\"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: *\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"x\", W/\"y\" ,\"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: ,, \"own\",\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"a,b\", \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"a\\\", \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"\", \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"\xe9\", \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"x\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"ow\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"OWN\"\r\n", HTTP_PROCEED },
    };
    CHECK_ROWS(rows, own);
}

static void ends_a_list_at_a_malformed_tag(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-None-Match:\r\n", HTTP_PROCEED },
        { "If-None-Match: ,\r\n", HTTP_PROCEED },
        { "If-None-Match: own\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\r\n", HTTP_PROCEED },
        { "If-None-Match: own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: w/\"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: W\"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: W/ \"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\"x\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\" \"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\";q=1\r\n", HTTP_PROCEED },
        { "If-None-Match: x, \"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: *, \"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: **\r\n", HTTP_PROCEED },
        { "If-None-Match: \"o wn\", \"own\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\", x\r\n", HTTP_ANSWER_NOT_MODIFIED },
    };
    CHECK_ROWS(rows, own);
}

static void reads_a_list_in_several_lines(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-None-Match: \"x\"\r\nIf-None-Match: \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"x\"\r\nX: y\r\nif-none-match: \"y\"\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\"\r\nIf-None-Match: \"x\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: *\r\nIf-None-Match: *\r\n", HTTP_PROCEED },
        { "If-Match: \"x\"\r\nIf-Match: \"own\"\r\n", HTTP_PROCEED },
        { "If-Match: \"x\"\r\nIf-Match: \"y\"\r\n", HTTP_ANSWER_FAILED },
    };
    CHECK_ROWS(rows, own);
}

static void if_match_compares_strongly(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-Match: \"own\"\r\n", HTTP_PROCEED },
        { "If-Match: *\r\n", HTTP_PROCEED },
        { "If-Match: \"x\", \"own\"\r\n", HTTP_PROCEED },
        { "If-Match: W/\"own\"\r\n", HTTP_ANSWER_FAILED },
        { "If-Match: \"x\"\r\n", HTTP_ANSWER_FAILED },
        { "If-Match: own\r\n", HTTP_ANSWER_FAILED },
        { "If-Match:\r\n", HTTP_ANSWER_FAILED },
    };
    CHECK_ROWS(rows, own);
}

static void compares_no_more_tags_than_the_limit(void **state)
{
    (void)state;
    char fields[16 * 1024];
    for (int before = HTTP_ETAGS_MAX - 1; before <= HTTP_ETAGS_MAX; before++) {
        size_t at = (size_t)snprintf(fields, sizeof fields, "If-None-Match: ");
        for (int i = 0; i < before; i++)
            at += (size_t)snprintf(fields + at, sizeof fields - at, "\"%d\",", i);
        (void)snprintf(fields + at, sizeof fields - at, "\"own\"\r\n");
        assert_int_equal(evaluate(fields, own, NOW),
                         before < HTTP_ETAGS_MAX ? HTTP_ANSWER_NOT_MODIFIED : HTTP_PROCEED);
    }
}

static void if_modified_since_reads_dates_of_every_form(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-Modified-Since: " MODIFIED_TEXT "\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: " AFTER_TEXT "\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: " FUTURE_TEXT "\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: " BEFORE_TEXT "\r\n", HTTP_PROCEED },
        { "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: Sunday, 06-Nov-94 08:49:36 GMT\r\n", HTTP_PROCEED },
        { "If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: Sun Nov  6 08:49:36 1994\r\n", HTTP_PROCEED },
    };
    CHECK_ROWS(rows, own);
}

static void if_unmodified_since_fails_when_modified_later(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-Unmodified-Since: " MODIFIED_TEXT "\r\n", HTTP_PROCEED },
        { "If-Unmodified-Since: " AFTER_TEXT "\r\n", HTTP_PROCEED },
        { "If-Unmodified-Since: " BEFORE_TEXT "\r\n", HTTP_ANSWER_FAILED },
    };
    CHECK_ROWS(rows, own);
}

static void ignores_malformed_and_repeated_dates(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-Modified-Since: garbage\r\n", HTTP_PROCEED },
        { "If-Modified-Since:\r\n", HTTP_PROCEED },
        { "If-Modified-Since: 4102444800\r\n", HTTP_PROCEED },
        { "If-Modified-Since: " AFTER_TEXT "; length=9\r\n", HTTP_PROCEED },
        { "If-Modified-Since: " AFTER_TEXT ", " AFTER_TEXT "\r\n", HTTP_PROCEED },
        { "If-Modified-Since: " AFTER_TEXT "\r\nIf-Modified-Since: " AFTER_TEXT "\r\n",
          HTTP_PROCEED },
        { "If-Unmodified-Since: garbage\r\n", HTTP_PROCEED },
        { "If-Unmodified-Since: " BEFORE_TEXT "\r\nIf-Unmodified-Since: " BEFORE_TEXT "\r\n",
          HTTP_PROCEED },
    };
    CHECK_ROWS(rows, own);
}

/* RFC 9110 section 13.2.2. */
static void conditions_are_evaluated_in_order(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* A tag silences the date beside it. */
        { "If-None-Match: \"x\"\r\nIf-Modified-Since: " AFTER_TEXT "\r\n", HTTP_PROCEED },
        { "If-Match: \"own\"\r\nIf-Unmodified-Since: " BEFORE_TEXT "\r\n", HTTP_PROCEED },
        { "If-None-Match: \"own\"\r\nIf-Modified-Since: " BEFORE_TEXT "\r\n",
          HTTP_ANSWER_NOT_MODIFIED },
        /* Even one that cannot be read. */
        { "If-None-Match: x\r\nIf-Modified-Since: " AFTER_TEXT "\r\n", HTTP_PROCEED },
        /* 412 comes before 304, and both before the range. */
        { "If-None-Match: \"own\"\r\nIf-Match: \"x\"\r\n", HTTP_ANSWER_FAILED },
        { "If-None-Match: \"own\"\r\nIf-Match: \"own\"\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-Modified-Since: " AFTER_TEXT "\r\nIf-Unmodified-Since: " BEFORE_TEXT "\r\n",
          HTTP_ANSWER_FAILED },
        { "If-Modified-Since: " AFTER_TEXT "\r\nIf-Unmodified-Since: " AFTER_TEXT "\r\n",
          HTTP_ANSWER_NOT_MODIFIED },
        { "Range: bytes=0-1\r\nIf-Range: \"x\"\r\nIf-None-Match: \"own\"\r\n",
          HTTP_ANSWER_NOT_MODIFIED },
        { "Range: bytes=0-1\r\nIf-Range: \"x\"\r\nIf-Match: \"x\"\r\n", HTTP_ANSWER_FAILED },
        { "Range: bytes=0-1\r\nIf-Range: \"x\"\r\nIf-Match: \"own\"\r\n", HTTP_IGNORE_RANGE },
    };
    CHECK_ROWS(rows, own);
}

static void if_range_compares_strongly(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "Range: bytes=0-1\r\nIf-Range: \"own\"\r\n", HTTP_PROCEED },
        { "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: W/\"own\"\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: \"x\", \"own\"\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: \"own\", \"x\"\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: *\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range:\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: garbage\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: " MODIFIED_TEXT "\r\n", HTTP_PROCEED },
        { "Range: bytes=0-1\r\nIf-Range: Sun Nov  6 08:49:37 1994\r\n", HTTP_PROCEED },
        { "Range: bytes=0-1\r\nIf-Range: " BEFORE_TEXT "\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: " AFTER_TEXT "\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: \"own\"\r\nIf-Range: \"own\"\r\n", HTTP_IGNORE_RANGE },
        { "If-Range: \"x\"\r\n", HTTP_PROCEED },
    };
    CHECK_ROWS(rows, own);
}

static void a_date_fits_if_range_only_when_its_second_is_over(void **state)
{
    (void)state;
    const char *fields = "Range: bytes=0-1\r\nIf-Range: " MODIFIED_TEXT "\r\n";
    assert_int_equal(evaluate(fields, own, MODIFIED), HTTP_IGNORE_RANGE);
    assert_int_equal(evaluate(fields, own, MODIFIED + 1), HTTP_PROCEED);
}

static void missing_validators_match_only_the_star(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "If-None-Match: *\r\n", HTTP_ANSWER_NOT_MODIFIED },
        { "If-None-Match: \"\"\r\n", HTTP_PROCEED },
        { "If-None-Match:\r\n", HTTP_PROCEED },
        { "If-Match: *\r\n", HTTP_PROCEED },
        { "If-Match:\r\n", HTTP_ANSWER_FAILED },
        { "If-Match: \"\"\r\n", HTTP_ANSWER_FAILED },
        { "If-Modified-Since: " AFTER_TEXT "\r\n", HTTP_PROCEED },
        { "If-Unmodified-Since: " BEFORE_TEXT "\r\n", HTTP_PROCEED },
        { "Range: bytes=0-1\r\nIf-Range: \"\"\r\n", HTTP_IGNORE_RANGE },
        { "Range: bytes=0-1\r\nIf-Range: Wed, 31 Dec 1969 23:59:59 GMT\r\n", HTTP_IGNORE_RANGE },
    };
    const struct http_validators none = { .etag = { NULL, 0 }, .modified_s = -1 };
    CHECK_ROWS(rows, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proceeds_without_a_condition),
        cmocka_unit_test(if_none_match_compares_weakly),
        cmocka_unit_test(ends_a_list_at_a_malformed_tag),
        cmocka_unit_test(reads_a_list_in_several_lines),
        cmocka_unit_test(if_match_compares_strongly),
        cmocka_unit_test(compares_no_more_tags_than_the_limit),
        cmocka_unit_test(if_modified_since_reads_dates_of_every_form),
        cmocka_unit_test(if_unmodified_since_fails_when_modified_later),
        cmocka_unit_test(ignores_malformed_and_repeated_dates),
        cmocka_unit_test(conditions_are_evaluated_in_order),
        cmocka_unit_test(if_range_compares_strongly),
        cmocka_unit_test(a_date_fits_if_range_only_when_its_second_is_over),
        cmocka_unit_test(missing_validators_match_only_the_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
