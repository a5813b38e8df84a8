/* SPDX-License-Identifier: MIT
 *
 * Who takes part when caches are compared (bench/cache.c), and what is the same for all
 * of them: what an object is called, what bringing it in costs, and what is done with
 * one that was found.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BODY_BYTES = 1024, NAME_BYTES = 16, WORKERS_MAX = 64 };

/* A cache of so many objects of equal size. */
struct contestant {
    const char *name;
    /* Gives it, empty, for at most so many workers. Ends the program without memory. */
    void *(*make)(size_t capacity, unsigned workers);
    /* The calling thread is this worker from now on, until it leaves. */
    void (*enter)(void *cache, unsigned worker);
    /* Looks an object up, and brings it in when it is not there. Whether it was. */
    bool (*ask)(void *cache, unsigned worker, struct span name);
    void (*leave)(void *cache, unsigned worker);
    /* How often it has declined to keep what was brought in. */
    uint64_t (*refused)(void *cache);
    void (*end)(void *cache);
};

/* weir's own, as it is in src/site/cache.h. */
extern const struct contestant contestant_sieve, contestant_lru;

/* The source documents' designs. */
extern const struct contestant contestant_rwlock, contestant_stamps, contestant_semaphore;

uint64_t now_ns(void);

/* Does not return NULL: without memory the program ends. */
void *allocate(size_t bytes);

/* What a miss has to do: `body` is filled, `name` copied. */
void bring_in(char name_out[NAME_BYTES], char body_out[BODY_BYTES], struct span name);

/* What a hit is for. */
void look_at(const char body[BODY_BYTES]);
