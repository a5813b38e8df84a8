/* SPDX-License-Identifier: MIT
 *
 * Adds up what the threads hand over: steps, their seconds, and the progress of the run. Only one
 * thread calls it.
 */
#pragma once

#include "load/tally.h"

/* A second that not all threads have handed over yet. */
struct load_pending {
    struct load_pending *next;
    struct load_slice *sum;
    unsigned portions;
};

struct load_aggregate {
    unsigned threads;
    size_t step_count;
    struct load_outcome *outcomes; /* of each step */
    struct load_gaps *gaps;
    unsigned *portions; /* of each step: the number of threads that have handed it over */
    struct load_pending *pending;
    struct load_second latest;          /* the last whole second, in the warm-up too */
    uint64_t step_answers, step_errors; /* of the present step, in its whole seconds */
    size_t step;
};

/* 0 or -ENOMEM; end with load_aggregate_done in every case. */
MUST_USE int load_aggregate_init(struct load_aggregate *aggregate, size_t steps, unsigned threads);
void load_aggregate_done(struct load_aggregate *aggregate);

/* Takes the lists that the threads handed over; each may be NULL. 0 or -ENOMEM. */
MUST_USE int load_aggregate_take(struct load_aggregate *aggregate, struct load_slice *slices,
                                 struct load_portion *portions);

/* Gives the outcomes of the measured steps, once all threads have ended. */
void load_aggregate_finish(struct load_aggregate *aggregate, struct load_run *run);
