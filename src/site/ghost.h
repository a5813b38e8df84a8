/* SPDX-License-Identifier: MIT
 *
 * The ghost list: how many lookups caches of other sizes would miss, namely half, the same,
 * double and four times the bytes. Each size is simulated in miniature with the real cache's
 * policy, for a sample of the keys and an equal share of the bytes (Waldspurger and others, ATC
 * 2017). A simulated cache holds keys and sizes only. The sample is one key of 2^n, chosen by
 * hash; a smaller cache has a larger sample.
 *
 * Only misses are counted. A key that all four simulated caches hold, with its visited bit set,
 * changes nothing when it is used again. So the real cache reports a hit only for an entry that
 * is marked `ghost_pending`, and hardly any hit costs the lock. Private to the cache, and under
 * its lock.
 */
#pragma once

#include "site/cache.h"

struct site_ghost;

/* `forget` is called for a key whose next use has to be reported. NULL without memory, or when the
 * cache keeps nothing. */
struct site_ghost *site_ghost_new(struct site_cache_limits limits,
                                  void (*forget)(void *context, uint64_t hash), void *context);

/* Accepts NULL. */
void site_ghost_free(struct site_ghost *ghost);

/* Whether an entry is in the sample. False for a NULL list. */
bool site_ghost_watches(const struct site_ghost *ghost, const struct site_cache_entry *entry);

/* Reports the lookup of an entry in the sample. Adds the misses of each size to `misses`, scaled up
 * to all keys. Returns true when the next lookup can go unreported. */
bool site_ghost_lookup(struct site_ghost *ghost, const struct site_cache_entry *entry,
                       uint64_t misses[SITE_CACHE_SIZES]);
