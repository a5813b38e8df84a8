/* SPDX-License-Identifier: MIT
 *
 * Encrypted bytes that wait to be sent. They are kept in chunks, each of which holds at least one
 * whole TLS record. Bytes stay where they are until they are sent, also while more are added.
 *
 * A thread keeps unused chunks, newest first. A connection has chunks only while it has output.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TLS_RECORD_BYTES = 16 * 1024,                 /* the most plaintext of a record */
    TLS_CHUNK_BYTES = TLS_RECORD_BYTES + 5 + 256, /* and header and expansion (RFC 8446, 5.2) */
};

struct tls_chunk {
    struct tls_chunk *next;
    size_t at, len; /* unsent: bytes[at .. len) */
    char bytes[TLS_CHUNK_BYTES];
};

/* Zeroed: empty. */
struct tls_wire {
    struct tls_chunk *first, *last;
};

/* The unused chunks of one thread. Zeroed: none. */
struct tls_chunks {
    struct tls_chunk *spare;
    unsigned count;
};

/* Appends a copy of `bytes`. False: out of memory, and a part may have been added. */
MUST_USE bool tls_wire_add(struct tls_wire *wire, struct tls_chunks *chunks, struct span bytes);

/* Lends `size` bytes in one piece at the end, at most TLS_CHUNK_BYTES. The caller fills them, and
 * then calls tls_wire_commit. NULL: out of memory. */
char *tls_wire_reserve(struct tls_wire *wire, struct tls_chunks *chunks, size_t size);

/* The first `size` of the reserved bytes belong to the wire from now on. */
void tls_wire_commit(struct tls_wire *wire, struct tls_chunks *chunks, size_t size);

/* Lends the unsent bytes as at most `most` spans, and returns their number. They stay valid until
 * tls_wire_sent takes them. */
unsigned tls_wire_pieces(const struct tls_wire *wire, struct span *ret_pieces, unsigned most);

/* Removes `bytes` from the front, at most what tls_wire_pieces lent. */
void tls_wire_sent(struct tls_wire *wire, struct tls_chunks *chunks, size_t bytes);

/* Removes everything. */
void tls_wire_drop(struct tls_wire *wire, struct tls_chunks *chunks);

static inline bool tls_wire_is_empty(const struct tls_wire *wire)
{
    return !wire->first;
}

/* Frees unused chunks until at most `most` are left. */
void tls_chunks_trim(struct tls_chunks *chunks, unsigned most);
