/* SPDX-License-Identifier: MIT
 *
 * Random input for property tests. Each run has a new seed and prints it.
 * SEED=n in the environment replays that run. Not for cryptography.
 */
#pragma once

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct random_source {
    uint64_t state;
};

/* Starts with SEED or a new seed, and prints the seed. */
static inline struct random_source random_start(void)
{
    const char *text = getenv("SEED");
    struct timespec now;
    uint64_t seed;

    if (text != NULL) {
        seed = strtoull(text, NULL, 0);
    } else {
        CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
        seed = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) % 1000000000u;
    }
    (void)fprintf(stderr, "SEED=%llu replays this run\n", (unsigned long long)seed);
    return (struct random_source){ .state = seed };
}

/* 64 random bits: a counter in steps of the golden ratio, through two rounds of mixing. */
static inline uint64_t random_u64(struct random_source *source)
{
    source->state += 0x9e3779b97f4a7c15u;
    uint64_t bits = source->state;
    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    return bits ^ bits >> 32;
}

/* A number from 0 to `bound` - 1. */
static inline size_t random_below(struct random_source *source, size_t bound)
{
    CHECK(bound > 0);
    return (size_t)(random_u64(source) % bound);
}

/* True once in `odds` times. */
static inline int random_one_in(struct random_source *source, size_t odds)
{
    return random_below(source, odds) == 0;
}
