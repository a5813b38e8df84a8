/* SPDX-License-Identifier: MIT
 *
 * Two orders of eviction over the same doubly linked queues.
 *
 * sieve (Zhang and others, NSDI 2024): new entries enter at the newest end and never move. A
 * hand walks from old to new. It spares an entry that was visited, and clears the bit. It evicts
 * the first entry that was not visited.
 *
 * lru: an entry moves to the newest end when it is used. The oldest entry is evicted.
 */
#include "site/eviction.h"

static void queue_push(struct site_eviction *eviction, struct site_cache_entry *entry,
                       unsigned which)
{
    entry->queue[which].newer = NULL;
    entry->queue[which].older = eviction->queue[which].newest;
    if (eviction->queue[which].newest != NULL)
        eviction->queue[which].newest->queue[which].newer = entry;
    else
        eviction->queue[which].oldest = entry;
    eviction->queue[which].newest = entry;
    eviction->queue[which].count++;
}

static void queue_unlink(struct site_eviction *eviction, struct site_cache_entry *entry,
                         unsigned which)
{
    struct site_cache_entry *const newer = entry->queue[which].newer;
    struct site_cache_entry *const older = entry->queue[which].older;
    if (eviction->queue[which].hand == entry)
        eviction->queue[which].hand = newer;
    if (newer != NULL)
        newer->queue[which].older = older;
    else
        eviction->queue[which].newest = older;
    if (older != NULL)
        older->queue[which].newer = newer;
    else
        eviction->queue[which].oldest = newer;
    entry->queue[which] = (struct site_cache_link){ NULL, NULL };
    eviction->queue[which].count--;
}

/* The number of queues that hold an entry; the queue of all is the first. */
static unsigned queues_of(const struct site_cache_entry *entry)
{
    return entry->descriptors > 0 ? SITE_EVICTION_OPEN + 1 : SITE_EVICTION_ALL + 1;
}

void site_eviction_enter(struct site_eviction *eviction, struct site_cache_entry *entry)
{
    for (unsigned i = 0; i < queues_of(entry); i++)
        queue_push(eviction, entry, i);
}

void site_eviction_leave(struct site_eviction *eviction, struct site_cache_entry *entry)
{
    for (unsigned i = 0; i < queues_of(entry); i++)
        queue_unlink(eviction, entry, i);
}

void site_eviction_touch(struct site_eviction *eviction, struct site_cache_entry *entry)
{
    for (unsigned i = 0; i < queues_of(entry); i++) {
        if (eviction->queue[i].newest == entry)
            continue;
        queue_unlink(eviction, entry, i);
        queue_push(eviction, entry, i);
    }
}

/* After SITE_EVICTION_STEPS the hand takes the entry where it stands. Without this bound, the first
 * eviction from a large cache whose entries were all visited would clear every bit, under the lock:
 * about 50 ms for a million entries. In a small cache, the hand takes that entry after one round,
 * because readers may set bits meanwhile. */
static struct site_cache_entry *sieve_victim(struct site_eviction *eviction, unsigned which)
{
    struct site_cache_entry *hand = eviction->queue[which].hand;
    const size_t count = eviction->queue[which].count;
    for (size_t steps = count < SITE_EVICTION_STEPS ? count : SITE_EVICTION_STEPS; steps > 0;
         steps--) {
        if (hand == NULL)
            hand = eviction->queue[which].oldest;
        if (atomic_load_explicit(&hand->visited, memory_order_relaxed) == 0)
            break;
        atomic_store_explicit(&hand->visited, 0, memory_order_relaxed);
        hand = hand->queue[which].newer;
    }
    if (hand == NULL)
        hand = eviction->queue[which].oldest;
    eviction->queue[which].hand = hand;
    return hand;
}

struct site_cache_entry *site_eviction_victim(struct site_eviction *eviction,
                                              enum site_eviction_queue which)
{
    return eviction->policy == SITE_CACHE_LRU ? eviction->queue[which].oldest
                                              : sieve_victim(eviction, which);
}
