/* SPDX-License-Identifier: MIT
 *
 * The caches that bench/cache.c compares. Three things are the same for all of them: the name of
 * an object, the cost of a miss, and the use of a found object.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BODY_BYTES = 1024, NAME_BYTES = 16, WORKERS_MAX = 64 };

/* A cache for a number of objects of equal size. */
struct contestant {
    const char *name;
    /* Makes an empty cache for at most this many threads. Without memory the program ends. */
    void *(*make)(size_t capacity, unsigned workers);
    /* The calling thread has this number until it leaves. */
    void (*enter)(void *cache, unsigned worker);
    /* Looks an object up and inserts it on a miss. Returns whether it was found. */
    bool (*ask)(void *cache, unsigned worker, struct span name);
    void (*leave)(void *cache, unsigned worker);
    /* The number of insertions that the cache has declined. */
    uint64_t (*refused)(void *cache);
    void (*end)(void *cache);
};

/* weir's own cache, src/site/cache.h. */
extern const struct contestant contestant_sieve, contestant_lru;

/* The source documents' designs. */
extern const struct contestant contestant_rwlock, contestant_stamps, contestant_semaphore;

uint64_t now_ns(void);

/* Never returns NULL: without memory the program ends. */
void *allocate(size_t bytes);

/* The work of a miss: fills `body` and copies `name`. */
void bring_in(char name_out[NAME_BYTES], char body_out[BODY_BYTES], struct span name);

/* The work of a hit. */
void look_at(const char body[BODY_BYTES]);
