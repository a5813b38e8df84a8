/* SPDX-License-Identifier: MIT
 *
 * A run from its JSON form (docs/load-json.md), as far as it can be shown and merged
 * again. What is read may be anybody's: it is checked, and bounded by the size of the
 * file.
 */
#pragma once

#include "base/span.h"
#include "load/result.h"

enum { LOAD_WHY_MAX = 256, LOAD_FILE_MAX = 256 * 1024 * 1024 };

struct load_read {
    struct load_run run;
    struct load_plan plan;
    void *text; /* what strings are lent from */
};

/* 0; or -errno, and `ret_why` says in one line what is wrong with the file, without its name.
 * End with load_read_done after 0 only. */
MUST_USE int load_read_text(struct span text, struct load_read *ret_read,
                            char ret_why[LOAD_WHY_MAX]);
MUST_USE int load_read_file(const char *path, struct load_read *ret_read,
                            char ret_why[LOAD_WHY_MAX]);
void load_read_done(struct load_read *read);
