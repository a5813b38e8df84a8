/* SPDX-License-Identifier: MIT
 *
 * Writing JSON (RFC 8259) to a stream as it comes: objects and arrays, member by
 * member. Nothing is kept, so that it may be as long as it likes; what has been begun
 * has to be ended in its order. Texts are escaped as base/escape.h has it.
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

/* The whole of a text; `out` is borrowed. Ends with json_writer_end. */
struct json_writer json_writer_open(FILE *out, char bracket);

/* Members. `name` is plain ASCII, and NULL in an array. */
struct json_writer json_writer_begin(struct json_writer *list, const char *name, char bracket);
void json_writer_end(const struct json_writer *list, char bracket);
void json_writer_add_text(struct json_writer *list, const char *name, const char *text);
void json_writer_add_span(struct json_writer *list, const char *name, struct span text);
void json_writer_add_number(struct json_writer *list, const char *name, uint64_t value);
void json_writer_add_real(struct json_writer *list, const char *name, double value); /* or null */
void json_writer_add_seconds(struct json_writer *list, const char *name, uint64_t ns);
void json_writer_add_bool(struct json_writer *list, const char *name, bool value);
void json_writer_add_null(struct json_writer *list, const char *name);

/* For a member whose value the caller writes: its name and what parts it from the one before. */
void json_writer_next(struct json_writer *list, const char *name);
