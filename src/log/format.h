/* SPDX-License-Identifier: MIT
 *
 * Reading a format that an operator writes, in the notation of nginx or Apache, and adding its
 * values to a layout.
 *
 * Private to log/.
 */
#pragma once

#include "base/buf.h"
#include "log/layout.h"

/* A layout while it is made. */
struct log_format_making {
    struct log_layout *layout;
    struct buf text; /* of the layout */
    size_t literal;  /* where the literal text before the next value begins */
    bool quoted;     /* a quote is open at the end of the literal text */
    char *why;       /* LOG_LAYOUT_WHY_MAX bytes */
};

/* Adds the values and the literal text of `format`. False: it is wrong, and m->why says why. The
 * same holds for the functions below. */
MUST_USE bool log_format_compile(struct log_format_making *m, struct span format);

/* Adds one byte of literal text. */
void log_format_add_literal(struct log_format_making *m, char c);

/* Returns the literal text since the last value. It belongs to the next one, or to the end. */
struct span log_format_take_literal(struct log_format_making *m);

/* Adds a value behind the literal text. `next`: the byte that follows it; 0: none. */
MUST_USE bool log_format_add_place(struct log_format_making *m, struct log_place place, char next);

/* The same for a field of the request. */
MUST_USE bool log_format_add_field(struct log_format_making *m, struct span name, char next);

/* Sets m->why, and returns false. */
bool log_format_refuse(const struct log_format_making *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
