/* SPDX-License-Identifier: MIT
 *
 * Reads a run from its JSON form (docs/load-json.md), as far as reports and merging need it. The
 * file is not trusted: everything in it is checked, and its size bounds the memory.
 */
#pragma once

#include "base/span.h"
#include "load/result.h"

enum { LOAD_WHY_MAX = 256, LOAD_FILE_MAX = 256 * 1024 * 1024 };

struct load_read {
    struct load_run run;
    struct load_plan plan;
    void *text; /* the strings of the run point into it */
};

/* 0; or -errno, and `ret_why` is one line about the error, without the name of the file. End with
 * load_read_done only after 0. */
MUST_USE int load_read_text(struct span text, struct load_read *ret_read,
                            char ret_why[LOAD_WHY_MAX]);
MUST_USE int load_read_file(const char *path, struct load_read *ret_read,
                            char ret_why[LOAD_WHY_MAX]);
void load_read_done(struct load_read *read);
