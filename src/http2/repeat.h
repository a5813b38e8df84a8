/* SPDX-License-Identifier: MIT
 *
 * Reads a request by comparing its header block with the one before. The requests of a page differ
 * in :path alone, and those of a poll not even there. Then the other fields cost a comparison of
 * bytes. Nothing is guessed: while the table is unchanged, equal bytes are equal fields (RFC 7541
 * section 2.3.3), and equal lines are equal to the parser.
 */
#pragma once

#include "http/request.h"
#include "http2/request.h"

/* The last request. The caller fills it, and sets `usable` when both parts are complete: the block
 * was DECODED and the text PARSED. It clears `usable` before it decodes another block with the same
 * table, and before the bytes of the block are gone. It also clears `usable` before it writes in
 * the storage. Only the last three bytes of the request line are an exception. */
struct http2_repeat {
    struct http2_request decoded;
    struct http_request parsed;
    bool usable;
};

/* Reads `block`, all of one header block. True: it is DECODED and PARSED, and only the target
 * differs from that of the last request. Borrows `block` until the next call. False: `usable` is
 * false. The block must be read from its beginning. */
bool http2_repeat_read(struct http2_repeat *last, struct span block);
