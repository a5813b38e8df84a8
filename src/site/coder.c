/* SPDX-License-Identifier: MIT
 *
 * Each library has the same three steps, so each coding has three short functions.
 */
#include "site/coder.h"

#include "site/compress.h"

#include <stdlib.h>
#include <zlib.h>

#ifdef WEIR_BROTLI
#include <brotli/encode.h>
#endif
#ifdef WEIR_ZSTD
#include <zstd.h>
#endif

static size_t room_left(const struct site_coder *coder)
{
    return coder->room - coder->len;
}

/* ---- br ---- */

#ifdef WEIR_BROTLI

/* Blocks of 64 KiB in place of 256 KiB make each call shorter, for about 0.1 % of the size. The
 * window is just large enough for the file, because its memory is allocated for each file. */
enum { BR_BLOCK_BITS = 16, BR_WINDOW_BITS_MOST = 22 };

static bool open_br(struct site_coder *coder, uint64_t size)
{
    uint32_t bits = BROTLI_MIN_WINDOW_BITS;
    while (bits < BR_WINDOW_BITS_MOST && (UINT64_C(1) << bits) - 16 < size)
        bits++;
    BrotliEncoderState *state = BrotliEncoderCreateInstance(NULL, NULL, NULL);
    coder->state = state;
    return state != NULL &&
           BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY,
                                     (uint32_t)site_compress_level(SITE_BR, size)) &&
           BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, bits) &&
           BrotliEncoderSetParameter(state, BROTLI_PARAM_LGBLOCK, BR_BLOCK_BITS) &&
           BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT, (uint32_t)size);
}

static enum site_coder_result feed_br(struct site_coder *coder, struct span piece, bool last)
{
    BrotliEncoderState *state = coder->state;
    const BrotliEncoderOperation operation = last ? BROTLI_OPERATION_FINISH
                                                  : BROTLI_OPERATION_PROCESS;
    const uint8_t *in = (const uint8_t *)piece.at;
    size_t in_left = piece.len;
    do {
        uint8_t *out = (uint8_t *)coder->out + coder->len;
        size_t left = room_left(coder);
        if (!BrotliEncoderCompressStream(state, operation, &in_left, &in, &left, &out, NULL))
            return SITE_CODER_FAILED;
        coder->len = coder->room - left;
        if (left == 0 && BrotliEncoderHasMoreOutput(state))
            return SITE_CODER_FULL;
    } while (in_left > 0 || BrotliEncoderHasMoreOutput(state));
    if (!last)
        return SITE_CODER_MORE;
    return BrotliEncoderIsFinished(state) ? SITE_CODER_DONE : SITE_CODER_FULL;
}

static void close_br(struct site_coder *coder)
{
    if (coder->state != NULL)
        BrotliEncoderDestroyInstance(coder->state);
}

#endif

/* ---- zstd ---- */

#ifdef WEIR_ZSTD

static bool open_zstd(struct site_coder *coder, uint64_t size)
{
    /* The window is at most 8 MiB, as RFC 9659 section 3 requires: that of level 19, and
     * SITE_COMPRESS_MOST. */
    ZSTD_CCtx *state = ZSTD_createCCtx();
    coder->state = state;
    return state != NULL &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(state, ZSTD_c_compressionLevel,
                                                site_compress_level(SITE_ZSTD, size))) &&
           !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(state, size));
}

/* The window reaches from the end of the file to the begin of the dictionary, but 8 MiB at most:
 * each client has so much memory for it (RFC 9842 section 5). */
static int delta_window_bits(uint64_t bytes)
{
    int bits = 10; /* libzstd's least */
    while (bits < 23 && UINT64_C(1) << bits < bytes)
        bits++;
    return bits;
}

static bool open_delta(struct site_coder *coder, struct span dictionary, uint64_t size)
{
    const uint64_t longer = size > dictionary.len ? size : dictionary.len;
    ZSTD_CCtx *state = ZSTD_createCCtx();
    coder->state = state;
    return state != NULL &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(state, ZSTD_c_compressionLevel,
                                                site_compress_level(SITE_ZSTD, longer))) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(state, ZSTD_c_windowLog,
                                                delta_window_bits(dictionary.len + size))) &&
           !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(state, size)) &&
           !ZSTD_isError(ZSTD_CCtx_refPrefix(state, dictionary.at, dictionary.len));
}

static enum site_coder_result feed_zstd(struct site_coder *coder, struct span piece, bool last)
{
    ZSTD_inBuffer in = { piece.at, piece.len, 0 };
    ZSTD_outBuffer out = { coder->out, coder->room, coder->len };
    size_t waiting;
    do {
        waiting =
            ZSTD_compressStream2(coder->state, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        coder->len = out.pos;
        if (ZSTD_isError(waiting))
            return SITE_CODER_FAILED;
        if (room_left(coder) == 0 && (waiting > 0 || in.pos < in.size))
            return SITE_CODER_FULL;
    } while (last ? waiting > 0 : in.pos < in.size);
    return last ? SITE_CODER_DONE : SITE_CODER_MORE;
}

static void close_zstd(struct site_coder *coder)
{
    (void)ZSTD_freeCCtx(coder->state); /* accepts NULL */
}

#endif

/* ---- gzip ---- */

static bool open_gzip(struct site_coder *coder, uint64_t size)
{
    enum { WINDOW_BITS = 15, WITH_GZIP_HEAD = 16, MEMORY_LEVEL = 9 };
    z_stream *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return false;
    if (deflateInit2(state, site_compress_level(SITE_GZIP, size), Z_DEFLATED,
                     WINDOW_BITS + WITH_GZIP_HEAD, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(state);
        return false;
    }
    coder->state = state;
    return true;
}

static enum site_coder_result feed_gzip(struct site_coder *coder, struct span piece, bool last)
{
    z_stream *state = coder->state;
    state->next_in = (Bytef *)(uintptr_t)piece.at; /* zlib 1.2 lacks the const */
    state->avail_in = (uInt)piece.len;
    state->next_out = (Bytef *)coder->out + coder->len;
    state->avail_out = (uInt)room_left(coder);
    const int result = deflate(state, last ? Z_FINISH : Z_NO_FLUSH);
    coder->len = coder->room - state->avail_out;
    if (result == Z_STREAM_END)
        return SITE_CODER_DONE;
    if (state->avail_out == 0)
        return SITE_CODER_FULL;
    return result == Z_OK ? SITE_CODER_MORE : SITE_CODER_FAILED;
}

static void close_gzip(struct site_coder *coder)
{
    if (coder->state != NULL)
        (void)deflateEnd(coder->state); /* its only error is a file that was not finished */
    free(coder->state);
}

/* ---- all ---- */

struct coding {
    bool (*open)(struct site_coder *coder, uint64_t size);
    enum site_coder_result (*feed)(struct site_coder *coder, struct span piece, bool last);
    void (*close)(struct site_coder *coder);
};

static const struct coding table[SITE_PLAIN] = {
#ifdef WEIR_BROTLI
    [SITE_BR] = { open_br, feed_br, close_br },
#endif
#ifdef WEIR_ZSTD
    [SITE_ZSTD] = { open_zstd, feed_zstd, close_zstd },
#endif
    [SITE_GZIP] = { open_gzip, feed_gzip, close_gzip },
};

uint8_t site_coder_codings(void)
{
    unsigned codings = 0;
    for (unsigned v = 0; v < SITE_PLAIN; v++)
        if (table[v].open != NULL)
            codings |= 1u << v;
    return (uint8_t)codings;
}

bool site_coder_open(struct site_coder *coder, enum site_variant coding, uint64_t size, char *out,
                     size_t room)
{
    CHECK(coding < SITE_PLAIN && table[coding].open != NULL && size <= SITE_COMPRESS_MOST);
    *coder = (struct site_coder){ .coding = coding, .out = out, .room = room };
    if (table[coding].open(coder, size))
        return true;
    table[coding].close(coder);
    return false;
}

bool site_coder_open_delta(struct site_coder *coder, struct span dictionary,
                           const unsigned char digest[SITE_CODER_DIGEST], uint64_t size, char *out,
                           size_t room)
{
#ifdef WEIR_ZSTD
    /* A skippable frame of 32 bytes, which are the digest. */
    static const char magic[] = { 0x5e, 0x2a, 0x4d, 0x18, SITE_CODER_DIGEST, 0, 0, 0 };
    CHECK(size <= SITE_COMPRESS_MOST && dictionary.len <= SITE_COMPRESS_MOST);
    *coder = (struct site_coder){ .coding = SITE_ZSTD, .out = out, .room = room };
    if (room < SITE_CODER_DELTA_HEAD)
        return false;
    memcpy(out, magic, sizeof(magic));
    memcpy(out + sizeof(magic), digest, SITE_CODER_DIGEST);
    coder->len = SITE_CODER_DELTA_HEAD;
    if (open_delta(coder, dictionary, size))
        return true;
    close_zstd(coder);
#else
    (void)coder, (void)dictionary, (void)digest, (void)size, (void)out, (void)room;
#endif
    return false;
}

enum site_coder_result site_coder_feed(struct site_coder *coder, struct span piece, bool last)
{
    return table[coder->coding].feed(coder, piece, last);
}

void site_coder_close(struct site_coder *coder)
{
    table[coder->coding].close(coder);
    coder->state = NULL;
}
