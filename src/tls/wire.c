/* SPDX-License-Identifier: MIT */
#include "tls/wire.h"

#include <stdlib.h>

enum { SPARE_MAX = 64 }; /* 1 MiB for each thread; more are freed */

static struct tls_chunk *take_chunk(struct tls_chunks *chunks)
{
    struct tls_chunk *chunk = chunks->spare;
    if (__builtin_expect(chunk != NULL, 1)) {
        chunks->spare = chunk->next;
        chunks->count--;
    } else {
        chunk = malloc(sizeof(*chunk));
        if (!chunk)
            return NULL;
    }
    chunk->next = NULL;
    chunk->at = chunk->len = 0;
    return chunk;
}

static void give_chunk(struct tls_chunks *chunks, struct tls_chunk *chunk)
{
    if (chunks->count >= SPARE_MAX) {
        free(chunk);
        return;
    }
    chunk->next = chunks->spare;
    chunks->spare = chunk;
    chunks->count++;
}

void tls_chunks_free(struct tls_chunks *chunks)
{
    while (chunks->spare) {
        struct tls_chunk *next = chunks->spare->next;
        free(chunks->spare);
        chunks->spare = next;
    }
    chunks->count = 0;
}

bool tls_wire_add(struct tls_wire *wire, struct tls_chunks *chunks, struct span bytes)
{
    while (bytes.len > 0) {
        struct tls_chunk *last = wire->last;
        if (!last || last->len == TLS_CHUNK_BYTES) {
            struct tls_chunk *chunk = take_chunk(chunks);
            if (!chunk)
                return false;
            *(last ? &last->next : &wire->first) = chunk;
            wire->last = last = chunk;
        }
        struct span part = span_first(bytes, TLS_CHUNK_BYTES - last->len);
        memcpy(last->bytes + last->len, part.at, part.len);
        last->len += part.len;
        bytes = span_skip(bytes, part.len);
    }
    return true;
}

unsigned tls_wire_pieces(const struct tls_wire *wire, struct span *ret_pieces, unsigned most)
{
    unsigned count = 0;
    for (const struct tls_chunk *c = wire->first; c && count < most; c = c->next)
        ret_pieces[count++] = span_of(c->bytes + c->at, c->len - c->at);
    return count;
}

static void drop_first(struct tls_wire *wire, struct tls_chunks *chunks)
{
    struct tls_chunk *first = wire->first;
    wire->first = first->next;
    if (!wire->first)
        wire->last = NULL;
    give_chunk(chunks, first);
}

void tls_wire_sent(struct tls_wire *wire, struct tls_chunks *chunks, size_t bytes)
{
    while (bytes > 0) {
        struct tls_chunk *first = wire->first;
        CHECK(first);
        size_t unsent = first->len - first->at;
        if (bytes < unsent) {
            first->at += bytes;
            return;
        }
        bytes -= unsent;
        drop_first(wire, chunks);
    }
}

void tls_wire_drop(struct tls_wire *wire, struct tls_chunks *chunks)
{
    while (wire->first)
        drop_first(wire, chunks);
}
