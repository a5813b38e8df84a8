/* SPDX-License-Identifier: MIT
 *
 * The memory of cached files: one mapping of about `cache-size`, shared by all threads.
 *
 * malloc has several arenas, and a block goes back to the arena that it came from. An entry is
 * loaded by one thread and freed by another. So every arena could grow to the size of the whole
 * cache, and each miss touched new pages. With this allocator a block that is freed serves the next
 * miss of any thread, and the memory of the cache has the bound that the operator set.
 *
 * It is a two-level segregated fit (Masmano, Ripoll, Crespo and Real 2004): to allocate and to free
 * takes a constant number of steps, a block has 8 bytes of administration, and free neighbours are
 * joined at once. A request that does not fit is served by malloc, so a caller notices nothing.
 *
 * All functions are safe between threads, and hold a lock for some ten nanoseconds. A NULL
 * allocator is malloc. It is never shared between processes. */
#pragma once

#include "base/check.h"

#include <stddef.h>

/* AddressSanitizer and ThreadSanitizer follow the blocks of malloc alone, so their builds keep the
 * cached files there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SITE_ALLOCATOR_IN_USE 0
#else
#define SITE_ALLOCATOR_IN_USE 1
#endif

/* Of all blocks, in bytes. Twice as much would cost 4 bytes more for each file. */
#define SITE_ALLOCATOR_ALIGNMENT 8

struct site_allocator;

/* Reserves address space for `bytes`. The kernel gives a page when it is first used. NULL when the
 * system refuses; this is no error, because NULL is malloc. */
struct site_allocator *site_allocator_new(size_t bytes);

/* Unmaps the memory, unless a block is still in use: a thread that outlives its server may read it.
 * Accepts NULL. */
void site_allocator_free(struct site_allocator *allocator);

/* A block for at least `size` bytes, not initialised. NULL without memory. */
MUST_USE void *site_allocator_take(struct site_allocator *allocator, size_t size);

/* Takes back a block of site_allocator_take with the same allocator. Accepts NULL. */
void site_allocator_give(struct site_allocator *allocator, void *block);

/* The bytes of all blocks in use, with their administration, without those of malloc. */
size_t site_allocator_used(struct site_allocator *allocator);
