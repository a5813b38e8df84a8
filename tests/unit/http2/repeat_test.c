/* SPDX-License-Identifier: MIT
 *
 * Blocks that are read by comparing them with the block before. Each result is compared with that
 * of the decoder and the parser.
 */
#include "http2/repeat.h"

#include "http2/client.h"
#include "support/hpack.h"
#include "support/parsed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROOM = 32 * 1024 };

#define FIELDS "Host: a.example\r\nUser-Agent: test/1\r\nPriority: u=3\r\nIf-Range: \"x\"\r\n"

/* Two decoders with the same table: one that repeats, and one that always decodes. */
static struct {
    struct http2_repeat last;
    struct http2_table table, other;
    char storage[HTTP2_REQUEST_STORAGE], other_storage[HTTP2_REQUEST_STORAGE];
} side;

static int begin_tables(void **state)
{
    (void)state;
    http2_table_init(&side.table, http2_request_keeps);
    http2_table_init(&side.other, http2_request_keeps);
    side.last.usable = false;
    return 0;
}

static int end_tables(void **state)
{
    (void)state;
    hpack_free(&side.table);
    hpack_free(&side.other);
    return 0;
}

static enum http2_request_result decode(struct http2_request *request, struct http2_table *table,
                                        struct span block, char *storage)
{
    enum http2_request_result result;
    http2_request_begin(request, table, block, storage, false);
    while ((result = http2_request_decode(request)) == HTTP2_REQUEST_GROW)
        hpack_grow(table, request->reader.needed);
    return result;
}

static enum http_parse parse(struct http_request *parsed, struct span text)
{
    enum http_status status;
    *parsed = (struct http_request){ 0 };
    return http_request_parse(parsed, text, &status);
}

/* Reads a block on both sides, which agree. Returns whether it was repeated. */
static bool read_block(struct span block)
{
    struct http2_repeat *last = &side.last;
    struct http2_request expected;
    struct http_request parsed;
    const bool repeated = http2_repeat_read(last, block);
    const enum http2_request_result result =
        decode(&expected, &side.other, block, side.other_storage);
    if (!repeated) {
        assert_false(last->usable);
        assert_int_equal(decode(&last->decoded, &side.table, block, side.storage), result);
        last->usable = result == HTTP2_REQUEST_DECODED &&
                       parse(&last->parsed, last->decoded.text) == HTTP_PARSED;
        return false;
    }
    assert_int_equal(result, HTTP2_REQUEST_DECODED);
    assert_true(span_equal(last->decoded.text, expected.text));
    assert_true(span_equal(last->decoded.priority, expected.priority));
    assert_true(last->decoded.content_length == expected.content_length);
    assert_int_equal(last->decoded.scheme, expected.scheme);
    assert_int_equal(last->decoded.bytes_left, expected.bytes_left);
    assert_int_equal(parse(&parsed, expected.text), HTTP_PARSED);
    assert_true(parsed_same(&last->parsed, &parsed));
    /* As the session does, so that the log shows the version. */
    const struct http_slice line = last->parsed.line;
    memcpy((char *)(uintptr_t)last->decoded.text.at + line.at + line.len - 3, "2.0", 3);
    return true;
}

/* The block of a request. It stays valid for all of a test. */
static struct span block_of(const char *method, const char *path, const char *fields,
                            enum http2_client_form form)
{
    static char bytes[16 * ROOM];
    static size_t used;
    char head[ROOM];
    if (used > sizeof(bytes) - ROOM)
        used = 0;
    (void)snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\n%s\r\n", method, path, fields);
    struct buf block = buf_over(bytes + used, ROOM);
    (void)http2_client_add_request(&block, span_text(head), SPAN("https"), form);
    assert_false(block.overflow);
    used += block.len;
    return buf_span(&block);
}

static struct span later(const char *path)
{
    return block_of("GET", path, FIELDS, HTTP2_CLIENT_LATER);
}

/* The table has the fields, and the last request is that of `path`. */
static void begin_with(const char *path)
{
    assert_false(read_block(block_of("GET", "/first", FIELDS, HTTP2_CLIENT_FIRST)));
    assert_false(read_block(later(path)));
}

static void a_block_with_another_path_is_read_by_comparison(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/a", "/a",   "/abc",       "/a/much/longer/path/than/before.html?with=a&query",
        "/b", "/%20", "/~\x80\xff", "/c", /* the bytes are not shorter in Huffman code */
    };
    begin_with("/start.html");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (!read_block(later(paths[i])))
            fail_msg("%s", paths[i]);
}

static void an_equal_block_without_a_table_is_read_by_comparison(void **state)
{
    (void)state;
    const struct span block = block_of("HEAD", "/x", FIELDS, HTTP2_CLIENT_PLAIN);
    assert_false(read_block(block));
    assert_true(read_block(block));
    assert_true(read_block(block_of("HEAD", "/longer", FIELDS, HTTP2_CLIENT_PLAIN)));
}

/* The last block is the one that the next block is compared with, also after an equal one. */
static void an_equal_block_may_be_elsewhere(void **state)
{
    (void)state;
    char first[ROOM], second[ROOM];
    const struct span block = block_of("GET", "/x", FIELDS, HTTP2_CLIENT_PLAIN);
    memcpy(first, block.at, block.len);
    memcpy(second, block.at, block.len);
    assert_false(read_block(span_of(first, block.len)));
    assert_true(read_block(span_of(second, block.len)));
    memset(first, 0, sizeof(first));
    assert_true(read_block(block_of("GET", "/y", FIELDS, HTTP2_CLIENT_PLAIN)));
}

static void a_block_that_differs_in_more_is_decoded(void **state)
{
    (void)state;
    begin_with("/a");
    assert_false(read_block(block_of("HEAD", "/a", FIELDS, HTTP2_CLIENT_LATER)));
    assert_false(read_block(later("/a")));
    assert_false(read_block(block_of("GET", "/a", FIELDS, HTTP2_CLIENT_PLAIN)));
    assert_false(read_block(block_of("GET", "/a", FIELDS "Range: a\r\n", HTTP2_CLIENT_PLAIN)));
    assert_false(read_block(block_of("GET", "/a", FIELDS "Range: b\r\n", HTTP2_CLIENT_PLAIN)));
    assert_true(read_block(block_of("GET", "/b", FIELDS "Range: b\r\n", HTTP2_CLIENT_PLAIN)));
}

static void a_block_behind_one_that_changed_the_table_is_decoded(void **state)
{
    (void)state;
    const struct span first = block_of("GET", "/a", FIELDS, HTTP2_CLIENT_FIRST);
    assert_false(read_block(first));
    assert_false(read_block(first)); /* it adds its fields again */
    assert_false(read_block(later("/a")));
    char resized[ROOM] = "\x20"; /* a size update to 0 */
    const struct span plain = block_of("GET", "/a", FIELDS, HTTP2_CLIENT_PLAIN);
    memcpy(resized + 1, plain.at, plain.len);
    assert_false(read_block(span_of(resized, plain.len + 1)));
    assert_false(read_block(span_of(resized, plain.len + 1)));
}

static void a_path_that_is_wrong_or_unusual_is_decoded(void **state)
{
    (void)state;
    char longer[200] = "/";
    memset(longer + 1, '~', sizeof(longer) - 2);
    const char *const paths[] = { "a", "*", "/\x01", "/a\x7f", "/", "/index.html", longer };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        side.last.usable = false;
        begin_with("/a");
        if (read_block(later(paths[i])))
            fail_msg("%s", paths[i]);
    }
}

/* Every byte of a block is changed once, and every beginning of it is read. */
static void a_damaged_block_gives_what_the_decoder_gives(void **state)
{
    (void)state;
    const struct span whole = later("/whole.html");
    char bytes[ROOM];
    for (size_t at = 0; at < whole.len; at++)
        for (unsigned bit = 0; bit < 9; bit++) {
            end_tables(state);
            begin_tables(state);
            begin_with("/other.html");
            memcpy(bytes, whole.at, whole.len);
            bytes[at] = (char)(bytes[at] ^ (bit < 8 ? 1u << bit : 0));
            (void)read_block(span_of(bytes, bit < 8 ? whole.len : at));
        }
}

static void a_head_stays_within_its_bounds(void **state)
{
    (void)state;
    static char fields[HTTP_HEAD_MAX + 100];
    const char before[] = "Host: a\r\nReferer: ", behind[] = "\r\n";
    /* With the path /a the head has all bytes that it may have. */
    const size_t rest = sizeof("GET /a HTTP/1.1\r\nhost: a\r\nreferer: \r\n\r\n") - 1;
    memset(fields, 'x', sizeof(fields));
    memcpy(fields, before, sizeof(before) - 1);
    memcpy(fields + sizeof(before) - 1 + HTTP_HEAD_MAX - rest, behind, sizeof(behind));
    assert_false(read_block(block_of("GET", "/a", fields, HTTP2_CLIENT_PLAIN)));
    assert_true(side.last.usable);
    assert_int_equal(side.last.parsed.head_len, HTTP_HEAD_MAX);
    assert_true(read_block(block_of("GET", "/b", fields, HTTP2_CLIENT_PLAIN)));
    assert_false(read_block(block_of("GET", "/bc", fields, HTTP2_CLIENT_PLAIN)));
}

#define WITH_TABLES(test) cmocka_unit_test_setup_teardown(test, begin_tables, end_tables)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLES(a_block_with_another_path_is_read_by_comparison),
        WITH_TABLES(an_equal_block_without_a_table_is_read_by_comparison),
        WITH_TABLES(an_equal_block_may_be_elsewhere),
        WITH_TABLES(a_block_that_differs_in_more_is_decoded),
        WITH_TABLES(a_block_behind_one_that_changed_the_table_is_decoded),
        WITH_TABLES(a_path_that_is_wrong_or_unusual_is_decoded),
        WITH_TABLES(a_damaged_block_gives_what_the_decoder_gives),
        WITH_TABLES(a_head_stays_within_its_bounds),
    };
    return cmocka_run_group_tests_name("http2/repeat", tests, NULL, NULL);
}
