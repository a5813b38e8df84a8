/* SPDX-License-Identifier: MIT
 *
 * From the words of the command line to the plan of a load. Options and URLs come
 * in any order; every mistake is told in one line.
 */
#pragma once

#include "load/option.h"

/* Options that somebody else reads, of how the result is shown; NULL name at the end. */
struct load_option_set {
    const struct load_option *options;
    void *context;
};

/* Reads `words` (NULL at the end, borrowed for as long as the plan is used) and the files that they
 * name. End with load_parse_done in every case. */
MUST_USE bool load_parse(const char *const *words, const struct load_option_set *more,
                         struct load_plan *ret_plan, struct load_refusal *refusal);
void load_parse_done(struct load_plan *plan);
