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

void tls_chunks_trim(struct tls_chunks *chunks, unsigned most)
{
    while (chunks->count > most) {
        struct tls_chunk *chunk = chunks->spare;
        chunks->spare = chunk->next;
        chunks->count--;
        free(chunk);
    }
}

/* The last chunk, with space for `size` bytes. NULL: out of memory. */
static struct tls_chunk *last_chunk(struct tls_wire *wire, struct tls_chunks *chunks, size_t size)
{
    struct tls_chunk *last = wire->last;
    if (last && TLS_CHUNK_BYTES - last->len >= size)
        return last;
    struct tls_chunk *chunk = take_chunk(chunks);
    if (chunk) {
        *(last ? &last->next : &wire->first) = chunk;
        wire->last = chunk;
    }
    return chunk;
}

bool tls_wire_add(struct tls_wire *wire, struct tls_chunks *chunks, struct span bytes)
{
    while (bytes.len > 0) {
        struct tls_chunk *last = last_chunk(wire, chunks, 1);
        if (!last)
            return false;
        struct span part = span_first(bytes, TLS_CHUNK_BYTES - last->len);
        memcpy(last->bytes + last->len, part.at, part.len);
        last->len += part.len;
        bytes = span_skip(bytes, part.len);
    }
    return true;
}

char *tls_wire_reserve(struct tls_wire *wire, struct tls_chunks *chunks, size_t size)
{
    struct tls_chunk *last = last_chunk(wire, chunks, size);
    return last ? last->bytes + last->len : NULL;
}

/* Only the first chunk of a wire is ever sent in part, so an empty one is the last. */
void tls_wire_commit(struct tls_wire *wire, struct tls_chunks *chunks, size_t size)
{
    struct tls_chunk *last = wire->last, *before = wire->first;
    last->len += size;
    if (last->len > 0)
        return;
    while (before != last && before->next != last)
        before = before->next;
    *(before == last ? &wire->first : &before->next) = NULL;
    wire->last = before == last ? NULL : before;
    give_chunk(chunks, last);
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
