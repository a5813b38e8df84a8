/* SPDX-License-Identifier: MIT
 *
 * Response heads as header blocks, read back field by field.
 */
#include "http2/response.h"

#include "support/guard.h"
#include "support/hpack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char name_storage[HTTP2_HPACK_TEXT_MAX], value_storage[HTTP2_HPACK_TEXT_MAX];

/* The fields of a block as `name: value` lines in `text`. No field enters a table. */
static void read_block(struct span block, struct buf *text)
{
    struct http2_hpack_reader reader;
    struct http2_field field;
    struct http2_table table;
    struct guard guard;

    http2_table_init(&table, NULL);
    assert_true(
        http2_hpack_begin(&reader, &table, guard_copy(&guard, block), name_storage, value_storage));
    while (http2_hpack_next(&reader, &field) == HTTP2_HPACK_FIELD) {
        assert_true(field.valid);
        buf_add(text, field.name);
        buf_add(text, SPAN(": "));
        buf_add(text, field.value);
        buf_add_char(text, '\n');
    }
    assert_true(reader.at == reader.end);
    assert_int_equal(table.count, 0);
    guard_done(&guard);
}

static void assert_reads(const struct buf *block, const char *fields)
{
    char bytes[1024];
    struct buf text = buf_over(bytes, sizeof(bytes));

    assert_false(block->overflow);
    read_block(buf_span(block), &text);
    if (!span_equal(buf_span(&text), span_text(fields)))
        fail_msg("`%.*s` is not `%s`", (int)text.len, text.at, fields);
}

static void rfc_9113_section_8_3_2_the_status_comes_first(void **state)
{
    (void)state;
    char bytes[512];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_head(&block, SPAN("HTTP/1.1 206 Partial Content\r\nDate: Sun\r\n"
                                         "Content-Range: bytes 0-1/2\r\n\r\nbody"));
    assert_reads(&block, ":status: 206\ndate: Sun\ncontent-range: bytes 0-1/2\n");
}

static void writes_every_status_in_few_bytes(void **state)
{
    (void)state;
    for (unsigned status = 100; status < 600; status++) {
        char bytes[64], expected[32];
        struct buf block = buf_over(bytes, sizeof(bytes));
        http2_response_add_status(&block, status);
        assert_true(block.len <= HTTP2_RESPONSE_STATUS_MAX);
        assert_int_equal(block.len == 1, status == 200 || status == 204 || status == 206 ||
                                             status == 304 || status == 400 || status == 404 ||
                                             status == 500);
        (void)snprintf(expected, sizeof(expected), ":status: %u\n", status);
        assert_reads(&block, expected);
    }
}

static void rfc_9113_section_8_2_2_drops_the_fields_of_a_connection(void **state)
{
    (void)state;
    char bytes[512];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_head(&block,
                            SPAN("HTTP/1.1 200 OK\r\nConnection: close\r\nKeep-Alive: timeout=1\r\n"
                                 "ETag: \"x\"\r\nTransfer-Encoding: chunked\r\nUPGRADE: h2c\r\n"
                                 "proxy-connection: close\r\nX-Last:  1 \r\n\r\n"));
    assert_reads(&block, ":status: 200\netag: \"x\"\nx-last: 1\n");
}

static void rfc_9113_section_8_2_1_names_are_in_lower_case(void **state)
{
    (void)state;
    char bytes[512];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_lines(&block, SPAN("X-Content-Type-Options: nosniff\r\nVary: Accept\r\n"));
    assert_reads(&block, "x-content-type-options: nosniff\nvary: Accept\n");
}

/* A date of 29 bytes is at the end of its field, so that it can be replaced in a block. */
static void a_date_has_a_fixed_place(void **state)
{
    (void)state;
    char bytes[64];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_date(&block, "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(block.len, HTTP2_RESPONSE_DATE_BYTES);
    memcpy(bytes + block.len - 29, "Mon, 07 Nov 1994 08:49:38 GMT", 29);
    assert_reads(&block, "date: Mon, 07 Nov 1994 08:49:38 GMT\n");
}

static void a_location_is_not_compressed(void **state)
{
    (void)state;
    char bytes[64];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_location(&block, SPAN("/new/a%20b"));
    assert_true(span_ends(buf_span(&block), SPAN("/new/a%20b")));
    assert_reads(&block, "location: /new/a%20b\n");
}

static void records_an_overflow(void **state)
{
    (void)state;
    struct span head = SPAN("HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\nX-Y: z\r\n\r\n");
    char bytes[128];
    struct buf whole = buf_over(bytes, sizeof(bytes));
    http2_response_add_head(&whole, head);
    assert_false(whole.overflow);
    for (size_t room = 0; room < whole.len; room++) {
        struct guard guard;
        struct buf part = buf_over(guard_room(&guard, room), room);
        http2_response_add_head(&part, head);
        assert_true(part.overflow);
        guard_done(&guard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_9113_section_8_3_2_the_status_comes_first),
        cmocka_unit_test(writes_every_status_in_few_bytes),
        cmocka_unit_test(rfc_9113_section_8_2_2_drops_the_fields_of_a_connection),
        cmocka_unit_test(rfc_9113_section_8_2_1_names_are_in_lower_case),
        cmocka_unit_test(a_date_has_a_fixed_place),
        cmocka_unit_test(a_location_is_not_compressed),
        cmocka_unit_test(records_an_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
