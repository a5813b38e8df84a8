/* SPDX-License-Identifier: MIT
 *
 * One header block: a HEADERS frame and the CONTINUATION frames that follow it (RFC 9113 sections
 * 6.2 and 6.10). No other frame may come between them, so a block is read when all of it is there.
 * Server and client use the same code.
 */
#pragma once

#include "http2/fault.h"

enum http2_block_result {
    HTTP2_BLOCK_WHOLE,
    HTTP2_BLOCK_MORE,  /* the input ends within the block */
    HTTP2_BLOCK_FAILED /* a connection error: only `fault` is set */
};

struct http2_block {
    struct span fields; /* without frame heads, padding and RFC 7540's priority */
    size_t size;        /* bytes of the block with its frames */
    uint32_t stream;    /* not 0 */
    uint8_t fault;      /* enum http2_fault */
    bool ends;          /* END_STREAM */
};

/* Reads the block at the front of `in`, which begins with the whole head of a HEADERS frame of at
 * most HTTP2_PAYLOAD_MAX bytes. `joined` is scratch memory of HTTP2_BLOCK_MAX bytes. `fields`
 * lends a part of `in`, or of `joined` when the block has several frames. */
enum http2_block_result http2_block_read(struct span in, char *joined,
                                         struct http2_block *ret_block);
