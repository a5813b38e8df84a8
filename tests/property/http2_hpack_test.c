/* SPDX-License-Identifier: MIT
 *
 * Header blocks beside libnghttp2: blocks that its encoder makes, the same blocks damaged, and
 * random bytes. Both decoders give the same fields, tables and faults. libnghttp2 reads
 * the fields that our encoder writes.
 */
#include "http2/response.h"
#include "support/inflater.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CONNECTIONS = 1500, BLOCKS = 12, FIELDS = 12, VALUE_MAX = 300, ROOM = 64 * 1024 };

static struct random_source random_bits;

static size_t pick(size_t bound)
{
    return random_below(&random_bits, bound);
}

/* A text of `len` bytes: most often letters, sometimes any byte. */
static void fill(uint8_t *text, size_t len)
{
    bool any = random_one_in(&random_bits, 8);
    for (size_t i = 0; i < len; i++)
        text[i] = (uint8_t)(any ? pick(256) : 'a' + pick(26));
}

static const char *const names[] = {
    ":method",    ":scheme",    ":authority",
    ":path",      "accept",     "accept-encoding",
    "user-agent", "referer",    "content-length",
    "cookie",     "te",         "priority",
    "host",       "x-a",        "x-b",
    "connection", "if-match",   "sec-fetch-mode",
    "range",      "via",        ":status",
    "Upper",      "keep-alive",
};
static const char *const values[] = { "GET",         "https",         "a.example", "/",
                                      "/index.html", "trailers",      "12",        "OPTIONS",
                                      "*",           "gzip, deflate", "CONNECT",   "",
                                      " x",          "u=1, i",        "http",      "/a b",
                                      "a.test",      "text/html",     "bytes=0-1" };

/* Fields in random order, most often with the four of a GET first. */
static size_t make_fields(nghttp2_nv *nv, uint8_t text[][VALUE_MAX])
{
    size_t count = 0, wanted = pick(FIELDS + 1);
    bool get = !random_one_in(&random_bits, 4);

    for (; count < wanted; count++) {
        bool pseudo = get && count < 4;
        const char *name = names[pseudo ? count : pick(sizeof(names) / sizeof(names[0]))];
        size_t len = pick(random_one_in(&random_bits, 10) ? VALUE_MAX : 24);
        fill(text[count], len);
        nv[count] = (nghttp2_nv){ (uint8_t *)name, text[count], strlen(name), len, 0 };
        if (pseudo || random_one_in(&random_bits, 2)) {
            static const char *const get_values[] = { "GET", "https", "a.example", "/x" };
            const char *value = pseudo ? get_values[count]
                                       : values[pick(sizeof(values) / sizeof(values[0]))];
            nv[count].value = (uint8_t *)value;
            nv[count].valuelen = strlen(value);
        }
        if (random_one_in(&random_bits, 12))
            nv[count].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    return count;
}

/* The same fields as before, with another value of one of them, most often of :path. */
static void change_field(nghttp2_nv *nv, uint8_t text[][VALUE_MAX], size_t count)
{
    size_t at = pick(count);
    for (size_t i = 0; i < count && !random_one_in(&random_bits, 4); i++)
        if (nv[i].namelen == 5 && memcmp(nv[i].name, ":path", 5) == 0)
            at = i;
    size_t len = 1 + pick(random_one_in(&random_bits, 10) ? VALUE_MAX - 1 : 24);
    fill(text[at], len);
    text[at][0] = '/';
    nv[at].value = text[at];
    nv[at].valuelen = len;
}

static size_t damage(uint8_t *block, size_t len)
{
    if (len == 0 || !random_one_in(&random_bits, 6))
        return len;
    for (size_t i = 1 + pick(3); i > 0; i--)
        block[pick(len)] ^= (uint8_t)(1u << pick(8));
    return random_one_in(&random_bits, 3) ? pick(len) : len;
}

static void our_decoder_reads_what_libnghttp2_writes(void **state)
{
    (void)state;
    static uint8_t text[FIELDS][VALUE_MAX], block[ROOM];
    unsigned repeats = 0;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct inflater_pair *pair = inflater_pair_new();
        nghttp2_hd_deflater *deflater;
        bool right = nghttp2_hd_deflate_new(&deflater, HTTP2_TABLE_MAX) == 0;
        nghttp2_nv nv[FIELDS];
        size_t count = 0;
        for (unsigned b = 0; right && b < BLOCKS; b++) {
            if (count == 0 || random_one_in(&random_bits, 3))
                count = make_fields(nv, text);
            else if (!random_one_in(&random_bits, 3))
                change_field(nv, text, count);
            if (random_one_in(&random_bits, 10)) {
                unsigned limit = (unsigned)pick(HTTP2_TABLE_MAX + 1);
                assert_int_equal(nghttp2_hd_deflate_change_table_size(deflater, limit), 0);
            }
            ssize_t len = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nv, count);
            assert_true(len >= 0);
            right = inflater_pair_read(pair, span_of((char *)block, damage(block, (size_t)len)));
        }
        nghttp2_hd_deflate_del(deflater);
        repeats += pair->repeats;
        inflater_pair_free(pair);
    }
    assert_true(repeats > CONNECTIONS / 100);
}

static void random_bytes_give_the_same_fields_or_the_same_fault(void **state)
{
    (void)state;
    static uint8_t block[200];
    for (unsigned i = 0; i < 20 * CONNECTIONS; i++) {
        struct inflater_pair *pair = NULL;
        size_t len = pick(sizeof(block));
        for (size_t at = 0; at < len; at++) /* small numbers are lengths that fit */
            block[at] = (uint8_t)(random_one_in(&random_bits, 3)   ? pick(256)
                                  : random_one_in(&random_bits, 2) ? 0x80 | pick(64)
                                                                   : pick(6));
        pair = inflater_pair_new();
        for (unsigned b = 0; b < 2; b++)
            if (!inflater_pair_read(pair, span_of((char *)block, len)))
                break;
        inflater_pair_free(pair);
    }
}

static void libnghttp2_reads_what_our_encoder_writes(void **state)
{
    (void)state;
    static char bytes[ROOM];
    struct inflater *inflater = inflater_new();
    for (unsigned i = 0; i < 2 * CONNECTIONS; i++) {
        struct buf block = buf_over(bytes, sizeof(bytes));
        uint8_t text[FIELDS][VALUE_MAX];
        size_t len[FIELDS], count = pick(FIELDS);
        const char *name[FIELDS];
        if (i == 0)
            http2_hpack_add_no_table(&block);
        for (size_t f = 0; f < count; f++) {
            name[f] = names[4 + pick(sizeof(names) / sizeof(names[0]) - 4)];
            len[f] = pick(VALUE_MAX);
            fill(text[f], len[f]);
            http2_hpack_add_field(&block, span_text(name[f]), span_of((char *)text[f], len[f]));
        }
        assert_false(block.overflow);
        assert_true(inflater_read(inflater, buf_span(&block)));
        assert_int_equal(inflater->count, count);
        for (size_t f = 0; f < count; f++) {
            assert_true(span_equal_nocase(inflater->field[f].name, span_text(name[f])));
            assert_true(span_equal(inflater->field[f].value, span_of((char *)text[f], len[f])));
        }
        assert_int_equal(nghttp2_hd_inflate_get_num_table_entries(inflater->hd), 61);
    }
    inflater_free(inflater);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_decoder_reads_what_libnghttp2_writes),
        cmocka_unit_test(random_bytes_give_the_same_fields_or_the_same_fault),
        cmocka_unit_test(libnghttp2_reads_what_our_encoder_writes),
    };
    random_bits = random_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
