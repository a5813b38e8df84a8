/* SPDX-License-Identifier: MIT
 *
 * When users ask, and for what: numbers drawn from a seed, so that a run can be
 * repeated. Each user has a stream of its own, and so does each thread's arrivals;
 * what one draws does not depend on how fast the others are answered.
 */
#pragma once

#include "load/plan.h"

#include <stddef.h>

/* ---- random numbers ---- */

/* A counter in steps of the golden ratio, mixed: 8 bytes for each user. */
struct load_random {
    uint64_t state;
};

/* The stream number `stream` of a seed. */
struct load_random load_random_of(uint64_t seed, uint64_t stream);

uint64_t load_random_next(struct load_random *random);

/* Above 0, at most 1. */
static inline double load_random_unit(struct load_random *random)
{
    return (double)((load_random_next(random) >> 11) + 1) * 0x1p-53;
}

/* ---- thinking ---- */

uint64_t load_think_draw(const struct load_think *think, struct load_random *random);

/* The mean of what is drawn. */
uint64_t load_think_mean_ns(const struct load_think *think);

/* How long user number `index` waits before its first request: spread evenly over `span_ns`,
 * however many users there are. */
uint64_t load_stagger_ns(uint64_t index, uint64_t span_ns);

/* ---- which target ---- */

/* Draws indices in proportion to their weights, each in the same few steps (Walker's aliases). */
struct load_choice {
    size_t count;
    double *keep;    /* the part of a column that is its own index */
    uint32_t *other; /* whose the rest is */
};

/* By the targets' weights, or by 1/rank^zipf in their order. 0 or -ENOMEM. */
MUST_USE int load_choice_init(struct load_choice *choice, const struct load_target *targets,
                              size_t count, double zipf);
void load_choice_done(struct load_choice *choice);
size_t load_choice_draw(const struct load_choice *choice, struct load_random *random);

/* ---- arrivals of the open loop ---- */

struct load_arrivals {
    uint64_t from_ns;
    double gap_ns; /* the mean */
    double at_ns;  /* of the next one, after from_ns */
    uint64_t count;
    double phase; /* evenly spaced: of this thread among all */
    bool poisson;
    struct load_random random;
};

/* Those of part `index` of `of` equal parts of `rate` a second, from `from_ns` on. */
void load_arrivals_init(struct load_arrivals *arrivals, double rate, unsigned index, unsigned of,
                        bool poisson, struct load_random random, uint64_t from_ns);

static inline uint64_t load_arrivals_due_ns(const struct load_arrivals *arrivals)
{
    return arrivals->from_ns + (uint64_t)arrivals->at_ns;
}

/* Goes on to the next one. */
void load_arrivals_take(struct load_arrivals *arrivals);

/* ---- parts ---- */

/* What part `index` of `of` gets of `total` things that cannot be divided. */
static inline uint64_t load_share(uint64_t total, unsigned index, unsigned of)
{
    return total / of + (index < total % of);
}
