/* SPDX-License-Identifier: MIT
 *
 * Reads the case files (tests/conformance/README.md) into a list: what to send
 * and what must come back. It checks the form of a file strictly, so that a
 * slip of the pen is an error and not a case that proves nothing. It does not
 * know what the answers mean; that is answer.h.
 */
#pragma once

#include "escape.h"

enum cases_end {
    CASES_END_NOTHING,    /* the bytes, and the client waits */
    CASES_END_HALF_CLOSE, /* then the end of input */
    CASES_END_EXPIRE      /* then the deadline passes */
};

struct cases_case {
    char *file; /* base name; shared by the cases of a file */
    int line;   /* of its title */
    char *title;
    char *request;
    size_t request_len;
    enum cases_end end;
    char **expect; /* the lines of the response block, escapes as written */
    size_t expect_count;
};

struct cases {
    struct cases_case *at;
    size_t count;
    char **files; /* the base names that the cases point to */
    size_t file_count;
};

/* Reads every *.md file of a folder, in the order of their names. Returns 0, or
 * -1 after one line on standard error that says what is wrong and where. */
MUST_USE int cases_read(struct cases *ret_cases, const char *folder,
                        const struct escape_tags *tags);

/* Frees everything. Accepts a zeroed list. */
void cases_done(struct cases *cases);
