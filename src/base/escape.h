/* SPDX-License-Identifier: MIT
 *
 * How bytes that anybody may have chosen are told, in a log, on a terminal or to a
 * program: so that a line stays one line, a terminal that shows it obeys nothing in
 * it, and a program can read it back.
 */
#pragma once

#include "base/span.h"

enum escape {
    ESCAPE_BYTES, /* `"`, `\`, controls and all above ASCII as \xHH */
    ESCAPE_WORD,  /* spaces too: for what stands without quotes */
    ESCAPE_TEXT,  /* controls, and what is not UTF-8, as \xHH */
    ESCAPE_JSON,  /* `"`, `\` and controls as \u00HH; bytes that are not UTF-8 likewise */
};

/* Writes `text` to `out`, as much of it as fits in `room` bytes without parting an
 * escape or a character, and returns how many bytes that took. With `out` NULL it
 * only counts.
 *
 * Where UTF-8 may stand, C1 controls (U+0080 to U+009F), line and paragraph
 * separators and what turns the direction of writing around are controls too. */
size_t escape_text(char *out, size_t room, struct span text, enum escape how);
