/* SPDX-License-Identifier: MIT
 *
 * When users send requests, and to which target: random numbers from a seed, so that a run can be
 * repeated. Each user and each thread's arrivals have a stream of their own, so that their numbers
 * do not depend on how fast others are answered.
 */
#pragma once

#include "load/plan.h"

#include <stddef.h>

/* ---- random numbers ---- */

/* SplitMix64: a counter in steps of the golden ratio, mixed. It takes 8 bytes per user. */
struct load_random {
    uint64_t state;
};

/* The stream number `stream` of a seed. */
struct load_random load_schedule_random_of(uint64_t seed, uint64_t stream);

uint64_t load_schedule_random_next(struct load_random *random);

/* Above 0, at most 1. */
static inline double load_schedule_random_unit(struct load_random *random)
{
    return (double)((load_schedule_random_next(random) >> 11) + 1) * 0x1p-53;
}

/* ---- think times ---- */

uint64_t load_schedule_think_draw(const struct load_think *think, struct load_random *random);

/* The mean of the numbers drawn. */
uint64_t load_schedule_think_mean_ns(const struct load_think *think);

/* The time that user number `index` waits before its first request. The times of any number of
 * users are spread evenly over `span_ns`. */
uint64_t load_schedule_stagger_ns(uint64_t index, uint64_t span_ns);

/* ---- which target ---- */

/* Draws indices in proportion to their weights, in constant time (Walker's alias method). */
struct load_choice {
    size_t count;
    double *keep;    /* the part of a column that is its own index */
    uint32_t *other; /* the index that has the rest of the column */
};

/* By the targets' weights, or by 1/rank^zipf in their order. 0 or -ENOMEM. */
MUST_USE int load_schedule_choice_init(struct load_choice *choice,
                                       const struct load_target *targets, size_t count,
                                       double zipf);
void load_schedule_choice_done(struct load_choice *choice);
size_t load_schedule_choice_draw(const struct load_choice *choice, struct load_random *random);

/* ---- arrivals of the open loop ---- */

struct load_arrivals {
    uint64_t from_ns;
    double gap_ns; /* the mean */
    double at_ns;  /* the next one, counted from from_ns */
    uint64_t count;
    double phase; /* evenly spaced: the place of this thread among those of all shards */
    bool poisson;
    struct load_random random;
};

/* The arrivals of part `index` of `of` equal parts of `rate` per second, from `from_ns` on. */
void load_schedule_arrivals_init(struct load_arrivals *arrivals, double rate, unsigned index,
                                 unsigned of, bool poisson, struct load_random random,
                                 uint64_t from_ns);

/* The arrivals of a thread in step number `step` of a plan: one part among those of all threads and
 * shards. */
void load_schedule_arrivals_begin(struct load_arrivals *arrivals, const struct load_plan *plan,
                                  size_t step, unsigned thread, uint64_t from_ns);

static inline uint64_t load_schedule_arrivals_due_ns(const struct load_arrivals *arrivals)
{
    return arrivals->from_ns + (uint64_t)arrivals->at_ns;
}

/* Moves to the next arrival. */
void load_schedule_arrivals_take(struct load_arrivals *arrivals);

/* Moves to the first arrival that is due at `until_ns` or later. Returns how many were passed. */
uint64_t load_schedule_arrivals_pass(struct load_arrivals *arrivals, uint64_t until_ns);

/* ---- parts ---- */

/* The share of part `index` of `of` in `total` whole things. */
static inline uint64_t load_schedule_share(uint64_t total, unsigned index, unsigned of)
{
    return total / of + (index < total % of);
}
