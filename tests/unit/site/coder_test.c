/* SPDX-License-Identifier: MIT
 *
 * The libraries behind site/coder.h. The end-to-end tests decode each coding with tools that are
 * not ours.
 */
#include "site/coder.h"

#include "site/compress.h"
#include "site/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#ifdef WEIR_ZSTD
#include <zstd.h>
#endif

enum { TEXT_BYTES = 300 * 1000 };

static char text[TEXT_BYTES], noise[TEXT_BYTES], out[TEXT_BYTES], other[TEXT_BYTES];

static int fill_texts(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        text[i] = "etaoinshr dlu"[(random >> 60) % 13];
        noise[i] = (char)(random >> 56);
    }
    return 0;
}

/* Compresses in pieces of this size. Returns the last result; *ret_len is the length. */
static enum site_coder_result encode(enum site_variant coding, struct span in, size_t piece,
                                     char *to, size_t room, size_t *ret_len)
{
    struct site_coder coder;
    enum site_coder_result result = SITE_CODER_MORE;
    assert_true(site_coder_open(&coder, coding, in.len, to, room));
    while (in.len > 0 && result == SITE_CODER_MORE) {
        const struct span part = span_first(in, piece);
        in = span_skip(in, part.len);
        result = site_coder_feed(&coder, part, in.len == 0);
    }
    *ret_len = coder.len;
    site_coder_close(&coder);
    return result;
}

static bool has_coding(enum site_variant coding)
{
    return (site_coder_codings() & 1u << coding) != 0;
}

static void every_coding_makes_text_smaller(void **state)
{
    (void)state;
    for (int v = 0; v < SITE_PLAIN; v++) {
        size_t len;
        if (!has_coding((enum site_variant)v))
            continue;
        for (size_t size = 1024; size <= TEXT_BYTES; size *= 6) {
            assert_int_equal(encode((enum site_variant)v, span_of(text, size), SITE_CONTENT_PIECE,
                                    out, site_compress_largest(size), &len),
                             SITE_CODER_DONE);
            assert_in_range(len, 20, size * 3 / 4);
        }
    }
}

static void equal_bytes_give_equal_results(void **state)
{
    (void)state;
    for (int v = 0; v < SITE_PLAIN; v++) {
        size_t len, again;
        if (!has_coding((enum site_variant)v))
            continue;
        for (int i = 0; i < 2; i++)
            assert_int_equal(encode((enum site_variant)v, span_of(text, 100 * 1000),
                                    SITE_CONTENT_PIECE, i ? out : other, TEXT_BYTES,
                                    i ? &len : &again),
                             SITE_CODER_DONE);
        assert_int_equal(len, again);
        assert_memory_equal(out, other, len);
    }
}

static void gzip_decodes_to_the_text(void **state)
{
    (void)state;
    size_t len;
    assert_true(has_coding(SITE_GZIP));
    assert_int_equal(encode(SITE_GZIP, span_of(text, TEXT_BYTES), 1000, out, TEXT_BYTES, &len),
                     SITE_CODER_DONE);
    z_stream in = { .next_in = (Bytef *)out,
                    .avail_in = (uInt)len,
                    .next_out = (Bytef *)other,
                    .avail_out = TEXT_BYTES };
    assert_int_equal(inflateInit2(&in, 15 + 16), Z_OK);
    assert_int_equal(inflate(&in, Z_FINISH), Z_STREAM_END);
    assert_int_equal(in.total_out, TEXT_BYTES);
    assert_int_equal(in.avail_in, 0);
    assert_int_equal(inflateEnd(&in), Z_OK);
    assert_memory_equal(text, other, TEXT_BYTES);
}

static void a_result_without_space_is_full_and_never_written_past(void **state)
{
    (void)state;
    for (int v = 0; v < SITE_PLAIN; v++) {
        size_t len;
        if (!has_coding((enum site_variant)v))
            continue;
        assert_int_equal(encode((enum site_variant)v, span_of(noise, TEXT_BYTES),
                                SITE_CONTENT_PIECE, out, site_compress_largest(TEXT_BYTES), &len),
                         SITE_CODER_FULL);
        for (size_t room = 1; room < 100; room++) {
            char *exact = malloc(room); /* a sanitizer sees a byte too many */
            assert_non_null(exact);
            assert_int_equal(encode((enum site_variant)v, span_of(text, 2000), SITE_CONTENT_PIECE,
                                    exact, room, &len),
                             SITE_CODER_FULL);
            assert_true(len <= room);
            free(exact);
        }
    }
}

static void a_file_can_be_given_up_at_any_piece(void **state)
{
    (void)state;
    for (int v = 0; v < SITE_PLAIN; v++) {
        if (!has_coding((enum site_variant)v))
            continue;
        for (size_t pieces = 0; pieces < 10; pieces++) {
            struct site_coder coder;
            assert_true(site_coder_open(&coder, (enum site_variant)v, TEXT_BYTES, out, TEXT_BYTES));
            for (size_t i = 0; i < pieces; i++)
                assert_int_equal(
                    site_coder_feed(
                        &coder, span_of(text + i * SITE_CONTENT_PIECE, SITE_CONTENT_PIECE), false),
                    SITE_CODER_MORE);
            site_coder_close(&coder);
        }
    }
}

#ifdef WEIR_ZSTD

static const unsigned char digest[SITE_CODER_DIGEST] = "a digest that is just 32 bytes.";

/* `other` is `text` with some bytes in between, and follows it in a bundle. */
static size_t change_text(void)
{
    memcpy(other, "/* new */", 9);
    memcpy(other + 9, text, 100 * 1000);
    memcpy(other + 9 + 100 * 1000, "/* also new */", 14);
    memcpy(other + 23 + 100 * 1000, text + 100 * 1000, 50 * 1000);
    return 150 * 1000 + 23;
}

static size_t encode_delta(struct span dictionary, struct span in, size_t room)
{
    struct site_coder coder;
    enum site_coder_result result = SITE_CODER_MORE;
    assert_true(site_coder_open_delta(&coder, dictionary, digest, in.len, out, room));
    while (in.len > 0 && result == SITE_CODER_MORE) {
        const struct span part = span_first(in, SITE_CONTENT_PIECE);
        in = span_skip(in, part.len);
        result = site_coder_feed(&coder, part, in.len == 0);
    }
    const size_t len = coder.len;
    site_coder_close(&coder);
    return result == SITE_CODER_DONE ? len : 0;
}

static void a_difference_is_small_and_decodes_with_its_dictionary(void **state)
{
    (void)state;
    static char plain[TEXT_BYTES];
    const size_t size = change_text();
    const size_t len = encode_delta(span_of(text, 150 * 1000), span_of(other, size), TEXT_BYTES);
    assert_in_range(len, SITE_CODER_DELTA_HEAD + 20, 1000);
    /* RFC 9842 section 5: a skippable frame, and then the frame of zstd. */
    assert_memory_equal(out, "\x5e\x2a\x4d\x18\x20\0\0\0", 8);
    assert_memory_equal(out + 8, digest, SITE_CODER_DIGEST);
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    assert_non_null(decoder);
    assert_false(ZSTD_isError(ZSTD_DCtx_refPrefix(decoder, text, 150 * 1000)));
    assert_int_equal(ZSTD_decompressDCtx(decoder, plain, TEXT_BYTES, out + SITE_CODER_DELTA_HEAD,
                                         len - SITE_CODER_DELTA_HEAD),
                     size);
    assert_memory_equal(plain, other, size);
    assert_true(ZSTD_isError(ZSTD_decompressDCtx(
        decoder, plain, TEXT_BYTES, out + SITE_CODER_DELTA_HEAD, len - SITE_CODER_DELTA_HEAD)));
    assert_int_equal(ZSTD_freeDCtx(decoder), 0);
}

static void a_difference_without_space_is_full(void **state)
{
    (void)state;
    struct site_coder coder;
    assert_int_equal(encode_delta(span_of(noise, 2000), span_of(text, 50 * 1000), 1000), 0);
    assert_false(site_coder_open_delta(&coder, span_of(noise, 2000), digest, 50 * 1000, out,
                                       SITE_CODER_DELTA_HEAD - 1));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_coding_makes_text_smaller),
        cmocka_unit_test(equal_bytes_give_equal_results),
        cmocka_unit_test(gzip_decodes_to_the_text),
        cmocka_unit_test(a_result_without_space_is_full_and_never_written_past),
        cmocka_unit_test(a_file_can_be_given_up_at_any_piece),
#ifdef WEIR_ZSTD
        cmocka_unit_test(a_difference_is_small_and_decodes_with_its_dictionary),
        cmocka_unit_test(a_difference_without_space_is_full),
#endif
    };
    return cmocka_run_group_tests(tests, fill_texts, NULL);
}
