/* SPDX-License-Identifier: MIT
 *
 * A bounded writer. Text is appended until the storage is full. Then the buffer records an
 * overflow instead of writing past its end. It owns no memory.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct buf {
    char *at;
    size_t len;
    size_t size;   /* capacity in bytes */
    bool overflow; /* an append did not fit; the content is the appends before it */
};

/* Borrows `storage` of `size` bytes while the buffer is in use. */
static inline struct buf buf_over(char *storage, size_t size)
{
    return (struct buf){ .at = storage, .len = 0, .size = size, .overflow = false };
}

static inline size_t buf_room(const struct buf *b)
{
    return b->size - b->len;
}

/* The bytes written so far; valid until the storage changes. */
static inline struct span buf_span(const struct buf *b)
{
    return span_of(b->at, b->len);
}

/* Appends all of `s`, or nothing and sets `overflow`. */
static inline void buf_add(struct buf *b, struct span s)
{
    if (__builtin_expect(b->overflow || s.len > buf_room(b), 0)) {
        b->overflow = true;
        return;
    }
    if (s.len > 0)
        memcpy(b->at + b->len, s.at, s.len);
    b->len += s.len;
}

/* The same for text with unused bytes behind it, `size` in all, a constant. If all fit, they are
 * copied, too: a copy of constant length needs no call of memcpy. */
static inline void buf_add_padded(struct buf *b, struct span s, size_t size)
{
    if (__builtin_expect(b->overflow || size > buf_room(b), 0)) {
        buf_add(b, s);
        return;
    }
    memcpy(b->at + b->len, s.at, size);
    b->len += s.len;
}

static inline void buf_add_char(struct buf *b, char c)
{
    buf_add(b, span_of(&c, 1));
}

/* Appends the decimal digits of `value`. */
void buf_add_u64(struct buf *b, uint64_t value);

/* Appends `value` as exactly `digits` lower-case hexadecimal digits, 1 to 16. */
void buf_add_hex(struct buf *b, uint64_t value, unsigned digits);

/* Appends value / unit with three digits, rounded half up: 0.00, 1.23, 12.3, 123; from 1000 as a
 * whole number. `unit` is 1 to UINT32_MAX. */
void buf_add_figures(struct buf *b, uint64_t value, uint64_t unit);
