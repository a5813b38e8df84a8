/* SPDX-License-Identifier: MIT
 *
 * The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B). huffman.def has the code. A
 * generator of the build (tools/hpack_tables.py) makes the decoding table from it.
 */
#pragma once

#include "base/span.h"

/* Decodes all of `code` to `out`, which has `room` bytes, and returns how many bytes the text has.
 * Text behind `room` is counted and not written. -1: the code has the symbol EOS, or its padding
 * has more than 7 bits or is not the beginning of EOS. It reads no byte outside of `code`. */
long http2_huffman_decode(struct span code, char *out, size_t room);

/* Bytes of the code of `text`. */
size_t http2_huffman_len(struct span text);

/* Writes the code of `text` to `out`, which has space for http2_huffman_len bytes. */
void http2_huffman_encode(struct span text, char *out);
