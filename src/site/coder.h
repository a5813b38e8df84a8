/* SPDX-License-Identifier: MIT
 *
 * One content coding of one file, piece by piece: libbrotlienc, libzstd or zlib behind one
 * interface. The same bytes and level always give the same result, so all workers make equal
 * variants, with equal entity tags.
 *
 * It knows no threads, no cache and no budget. Private to site/, except for the set of codings.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "site/site.h"

/* The codings of this build (bits 1 << enum site_variant). A build without a library lacks its
 * coding. */
uint8_t site_coder_codings(void);

struct site_coder {
    enum site_variant coding;
    void *state; /* the library's */
    char *out;
    size_t room, len; /* of `out`, and used */
};

enum site_coder_result {
    SITE_CODER_MORE,  /* the piece is taken: feed the next one */
    SITE_CODER_DONE,  /* after the last piece: `len` bytes are in `out` */
    SITE_CODER_FULL,  /* the result has more than `room` bytes */
    SITE_CODER_FAILED /* no memory */
};

/* Begins a file of `size` bytes. Borrows `out` until the close. False without memory. */
bool site_coder_open(struct site_coder *coder, enum site_variant coding, uint64_t size, char *out,
                     size_t room);

/* The same for the difference of a file from a dictionary: `dcz`, zstd with the dictionary as the
 * bytes before the file (RFC 9842 section 5). Borrows the dictionary, too, at most
 * SITE_COMPRESS_MOST bytes. `digest` is its SHA-256. False, too, in a build without zstd. */
enum { SITE_CODER_DELTA_HEAD = 40, SITE_CODER_DIGEST = 32 };
bool site_coder_open_delta(struct site_coder *coder, struct span dictionary,
                           const unsigned char digest[SITE_CODER_DIGEST], uint64_t size, char *out,
                           size_t room);

/* Takes the next bytes of the file. Pieces of SITE_CONTENT_PIECE bytes keep each call short: at the
 * best level a call takes up to some tenths of a second, because libraries work in blocks of 64 or
 * 128 KiB. After a result other than SITE_CODER_MORE only the close may follow. */
enum site_coder_result site_coder_feed(struct site_coder *coder, struct span piece, bool last);

void site_coder_close(struct site_coder *coder);
