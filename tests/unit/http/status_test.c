/* SPDX-License-Identifier: MIT
 *
 * The status table: every row of status.def, and what its words must look like.
 */
#include "http/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    enum http_status status;
    const char *line;
    const char *reason;
};

static const struct row rows[] = {
#define STATUS(code, name, reason, sentence) \
    { HTTP_##name, "HTTP/1.1 " #code " " reason "\r\n", reason },
#include "http/status.def"
#undef STATUS
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static void assert_span_is(struct span got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.at, expected, got.len);
}

static void each_code_has_its_line_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        assert_span_is(http_status_line(rows[i].status), rows[i].line);
        assert_span_is(http_status_reason(rows[i].status), rows[i].reason);
    }
}

static void the_line_has_the_form_of_rfc_9112_section_4(void **state)
{
    (void)state;
    assert_span_is(http_status_line(HTTP_OK), "HTTP/1.1 200 OK\r\n");
    assert_span_is(http_status_line(HTTP_NOT_FOUND), "HTTP/1.1 404 Not Found\r\n");
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char number[16];
        struct span line = http_status_line(rows[i].status);
        (void)snprintf(number, sizeof number, " %03d ", (int)rows[i].status);
        assert_memory_equal(line.at + 8, number, 5);
        for (size_t at = 0; at < line.len - 2; at++)
            assert_in_range(line.at[at], ' ', '~');
    }
}

static void codes_ascend_and_are_in_the_classes_of_http(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        assert_in_range(rows[i].status, 100, 599);
        if (i > 0)
            assert_true(rows[i].status > rows[i - 1].status);
    }
}

/* What a person meets gets a whole sentence; what a person never sees gets none. */
static void every_error_and_redirect_has_a_sentence_and_nothing_else_has(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct span sentence = http_status_sentence(rows[i].status);
        bool seen = rows[i].status >= 300 && rows[i].status != HTTP_NOT_MODIFIED;
        assert_int_equal(sentence.len > 0, seen);
        if (seen)
            assert_int_equal(sentence.at[sentence.len - 1], '.');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_line_and_reason),
        cmocka_unit_test(the_line_has_the_form_of_rfc_9112_section_4),
        cmocka_unit_test(codes_ascend_and_are_in_the_classes_of_http),
        cmocka_unit_test(every_error_and_redirect_has_a_sentence_and_nothing_else_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
