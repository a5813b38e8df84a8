/* SPDX-License-Identifier: MIT
 *
 * What one thread of the generator counts: of the step at hand, of the present
 * second, and when nothing was answered. It is handed over whole, a second or a
 * step at a time, so that counting shares nothing.
 */
#pragma once

#include "load/result.h"

/* One second of one thread. */
struct load_slice {
    struct load_slice *next;
    size_t step, index; /* of the step's seconds */
    bool measured;      /* else of the warm-up */
    struct load_second counts;
    uint64_t bucket[LOAD_SECOND_BUCKETS];
};

/* Times without an answer, the longest of them. */
enum { LOAD_GAPS = 32 };
struct load_gap {
    uint64_t from_ns, to_ns;
};
struct load_gaps {
    unsigned count;
    uint64_t least_ns; /* of those kept, when all places are taken */
    struct load_gap gap[LOAD_GAPS];
};

/* One step of one thread. */
struct load_portion {
    struct load_portion *next;
    size_t step;
    struct load_outcome outcome; /* without seconds */
    struct load_gaps gaps;
};

struct load_tally {
    struct load_portion *portion;
    struct load_slice *slice;
    uint64_t awaited;     /* requests begun and not ended */
    uint64_t gap_from_ns; /* since when nothing is answered, while any is awaited */
};

/* NULL without memory. */
struct load_portion *load_tally_portion_new(size_t step);
void load_tally_portion_free(struct load_portion *portion);
struct load_slice *load_tally_slice_new(size_t step, size_t index, bool measured);

/* 0 or -ENOMEM: `outcome` has room for durations. */
MUST_USE int load_outcome_init(struct load_outcome *outcome);
void load_outcome_done(struct load_outcome *outcome);

/* What ended at `now_ns` with the numbers that it has. */
struct load_ended {
    uint64_t response_ns, first_byte_ns;
    uint64_t intended_ns; /* UINT64_MAX: nothing was intended */
    uint64_t body_bytes;
    unsigned status;
    bool reused;
};
void load_tally_answer(struct load_tally *tally, const struct load_ended *ended);
void load_tally_error(struct load_tally *tally, enum load_error error);

/* A request begins to be awaited. */
static inline void load_tally_await(struct load_tally *tally, uint64_t now_ns)
{
    if (tally->awaited++ == 0)
        tally->gap_from_ns = now_ns;
}

/* Something has come that ends the time without an answer; `over` requests are awaited no more. */
void load_tally_end_gap(struct load_tally *tally, uint64_t now_ns, bool answered, unsigned over);

/* Adds what one thread has to what others have. */
void load_outcome_add(struct load_outcome *to, const struct load_outcome *from);

/* The times in which nobody had an answer, of all threads together. */
void load_gaps_meet(struct load_gaps *gaps, const struct load_gaps *other);
uint64_t load_gaps_longest_ns(const struct load_gaps *gaps);
