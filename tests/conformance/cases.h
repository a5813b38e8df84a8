/* SPDX-License-Identifier: MIT
 *
 * Reads the case files (tests/conformance/README.md) into a list of requests and
 * expected answers. It checks the form of a file strictly, so that a typing error
 * does not become a case that proves nothing. answer.h interprets the expectation.
 */
#pragma once

#include "escape.h"

enum cases_end {
    CASES_END_NOTHING,    /* after the bytes the client waits */
    CASES_END_HALF_CLOSE, /* after the bytes comes the end of input */
    CASES_END_EXPIRE      /* after the bytes the deadline passes */
};

struct cases_case {
    char *file; /* base name, shared by the cases of a file */
    int line;   /* of its title */
    char *title;
    char *request;
    size_t request_len;
    enum cases_end end;
    bool only_http1; /* HTTP/2 has nothing that corresponds */
    char **expect;   /* the lines of the response block, escapes as written */
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
