/* SPDX-License-Identifier: MIT
 *
 * What the threads hand over, put together: steps, their seconds, and what is told
 * of a run while it goes on. One thread only.
 */
#pragma once

#include "load/tally.h"

/* Seconds that some thread has not handed over yet. */
struct load_pending {
    struct load_pending *next;
    struct load_slice *sum;
    unsigned portions;
};

struct load_gather {
    unsigned threads;
    size_t step_count;
    struct load_outcome *outcomes; /* of each step */
    struct load_gaps *gaps;
    unsigned *portions; /* how many threads have handed over a step */
    struct load_pending *pending;
    struct load_second latest;          /* the last whole second, of the warm-up too */
    uint64_t step_answers, step_errors; /* of the step at hand, in whole seconds */
    size_t step;
};

/* 0 or -ENOMEM; end with load_gather_done in every case. */
MUST_USE int load_gather_init(struct load_gather *gather, size_t steps, unsigned threads);
void load_gather_done(struct load_gather *gather);

/* Takes what was handed over (lists, or NULL). 0 or -ENOMEM. */
MUST_USE int load_gather_take(struct load_gather *gather, struct load_slice *slices,
                              struct load_portion *portions);

/* All threads have ended: gives the outcomes of the steps that there are. */
void load_gather_finish(struct load_gather *gather, struct load_run *run);
