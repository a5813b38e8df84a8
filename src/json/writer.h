/* SPDX-License-Identifier: MIT
 *
 * Writes JSON (RFC 8259) to a stream: objects and arrays, member by member. It keeps nothing in
 * memory, so the text may have any length. The caller ends objects and arrays in their order.
 * Texts are escaped by base/escape.h.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* An object or array that is being written. */
struct json_writer {
    FILE *out;
    bool any; /* member has been written */
};

/* Begins the outermost object or array; borrows `out`. End with json_writer_end. */
struct json_writer json_writer_open(FILE *out, char bracket);

/* Members. `name` is plain ASCII, and NULL in an array. */
struct json_writer json_writer_begin(struct json_writer *writer, const char *name, char bracket);
void json_writer_end(const struct json_writer *writer, char bracket);
void json_writer_add_text(struct json_writer *writer, const char *name, const char *text);
void json_writer_add_span(struct json_writer *writer, const char *name, struct span text);
void json_writer_add_number(struct json_writer *writer, const char *name, uint64_t value);
void json_writer_add_real(struct json_writer *writer, const char *name,
                          double value); /* null: not finite */
void json_writer_add_seconds(struct json_writer *writer, const char *name, uint64_t ns);
void json_writer_add_bool(struct json_writer *writer, const char *name, bool value);
void json_writer_add_null(struct json_writer *writer, const char *name);

/* Writes a comma where one is needed, and the name. The caller writes the value. */
void json_writer_next(struct json_writer *writer, const char *name);
