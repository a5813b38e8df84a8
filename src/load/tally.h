/* SPDX-License-Identifier: MIT
 *
 * The counts of one thread of the generator: of the present step, of the present second, and the
 * times without an answer. A thread hands over a whole second or step at a time, so that counting
 * shares no memory with other threads.
 */
#pragma once

#include "load/result.h"

/* One second of one thread. */
struct load_slice {
    struct load_slice *next;
    size_t step, index; /* place among the step's seconds */
    bool measured;      /* else part of the warm-up */
    struct load_second counts;
    uint64_t bucket[LOAD_SECOND_BUCKETS];
};

/* The longest times without an answer. */
enum { LOAD_GAPS = 32 };
struct load_gap {
    uint64_t from_ns, to_ns;
};
struct load_gaps {
    unsigned count;
    uint64_t least_ns; /* the shortest one kept, once all places are taken */
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
    uint64_t awaited;     /* requests started and not ended */
    uint64_t gap_from_ns; /* the last answer, or the first request after a time without any */
};

/* NULL: out of memory. */
struct load_portion *load_tally_portion_new(size_t step);
void load_tally_portion_free(struct load_portion *portion);
struct load_slice *load_tally_slice_new(size_t step, size_t index, bool measured);

/* An answer, and its durations. */
struct load_ended {
    uint64_t response_ns, first_byte_ns;
    uint64_t intended_ns; /* since it was due; UINT64_MAX: closed loop */
    uint64_t body_bytes;
    unsigned status;
    bool reused;
};
void load_tally_answer(struct load_tally *tally, const struct load_ended *ended);
void load_tally_error(struct load_tally *tally, enum load_error error);

/* Counts a request as awaited from `now_ns` on. */
static inline void load_tally_await(struct load_tally *tally, uint64_t now_ns)
{
    if (tally->awaited++ == 0)
        tally->gap_from_ns = now_ns;
}

/* Ends the present time without an answer, when `answered` or when no request is awaited any more.
 * `over` requests have ended. */
void load_tally_end_gap(struct load_tally *tally, uint64_t now_ns, bool answered, unsigned over);

/* Reduces `gaps` to the times in which neither thread had an answer. */
void load_tally_intersect_gaps(struct load_gaps *gaps, const struct load_gaps *other);
uint64_t load_tally_longest_gap_ns(const struct load_gaps *gaps);
