/* SPDX-License-Identifier: MIT
 *
 * Escapes for bytes that a peer may have chosen, in logs, on terminals and in JSON. A line stays
 * one line, a terminal obeys nothing in it, and a program can read the original back.
 */
#pragma once

#include "base/span.h"

enum escape {
    ESCAPE_BYTES, /* `"`, `\`, controls and all above ASCII as \xHH */
    ESCAPE_WORD,  /* the same and spaces: for a word without quotes */
    ESCAPE_TEXT,  /* controls, and bytes that are not UTF-8, as \xHH */
    ESCAPE_JSON,  /* `"`, `\` and controls as \uHHHH; bytes that are not UTF-8 likewise */
};

/* Writes as much of `text` to `out` as fits in `room` bytes, in whole escapes and characters.
 * Returns how many bytes were written. With `out` NULL it only counts.
 *
 * In ESCAPE_TEXT and ESCAPE_JSON, C1 controls (U+0080 to U+009F), line and paragraph separators,
 * and characters that change the direction of writing count as controls, too. */
size_t escape_text(char *out, size_t room, struct span text, enum escape how);
