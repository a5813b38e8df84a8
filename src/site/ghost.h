/* SPDX-License-Identifier: MIT
 *
 * What caches of other sizes would do: half, the same, double and four times the bytes. Each is
 * played in miniature, by the real cache's policy, with a sample of the keys and room
 * for as great a part of the bytes (Waldspurger and others, ATC 2017); it knows keys and
 * sizes, and holds nothing. The sample is one key of a power of two, chosen by hash,
 * the greater the smaller the cache.
 *
 * Only misses are counted. What all four have, and would spare when they next make
 * room, needs not be told again, so that hardly any hit in the real cache is: an entry
 * that does is marked `ghost_pending`. Private to the cache, and under its lock.
 */
#pragma once

#include "site/cache.h"

struct site_ghost;

/* `forget` is called for a key that one of the caches will have to be told of again. NULL without
 * memory, or where the cache keeps nothing. */
struct site_ghost *site_ghost_new(struct site_cache_limits limits,
                                  void (*forget)(void *context, uint64_t hash), void *context);

/* Accepts NULL. */
void site_ghost_free(struct site_ghost *ghost);

/* Whether an entry is in the sample; with NULL none is. */
bool site_ghost_watches(const struct site_ghost *ghost, const struct site_cache_entry *entry);

/* An entry that it watches was looked up. Adds what caches of each size have missed to `misses`,
 * scaled up to all keys. True: the next time need not be told. */
bool site_ghost_lookup(struct site_ghost *ghost, const struct site_cache_entry *entry,
                       uint64_t misses[SITE_CACHE_SIZES]);
