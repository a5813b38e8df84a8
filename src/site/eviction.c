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

/* The place of an entry in one of the queues. */
static struct site_cache_link *link_of(struct site_cache_entry *entry, unsigned which)
{
    return which == SITE_EVICTION_ALL ? &entry->queue : entry->kind->open_link(entry);
}

static void queue_push(struct site_eviction *eviction, struct site_cache_entry *entry,
                       unsigned which)
{
    *link_of(entry, which) = (struct site_cache_link){ NULL, eviction->queue[which].newest };
    if (eviction->queue[which].newest != NULL)
        link_of(eviction->queue[which].newest, which)->newer = entry;
    else
        eviction->queue[which].oldest = entry;
    eviction->queue[which].newest = entry;
    eviction->queue[which].count++;
}

static void queue_unlink(struct site_eviction *eviction, struct site_cache_entry *entry,
                         unsigned which)
{
    const struct site_cache_link link = *link_of(entry, which);
    if (eviction->queue[which].hand == entry)
        eviction->queue[which].hand = link.newer;
    if (which == SITE_EVICTION_ALL && eviction->sweep == entry)
        eviction->sweep = link.newer;
    if (link.newer != NULL)
        link_of(link.newer, which)->older = link.older;
    else
        eviction->queue[which].newest = link.older;
    if (link.older != NULL)
        link_of(link.older, which)->newer = link.newer;
    else
        eviction->queue[which].oldest = link.newer;
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

struct site_cache_entry *site_eviction_sweep(struct site_eviction *eviction)
{
    struct site_cache_entry *entry = eviction->sweep;
    if (entry == NULL)
        entry = eviction->queue[SITE_EVICTION_ALL].oldest;
    if (entry != NULL)
        eviction->sweep = entry->queue.newer;
    return entry;
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
        hand = link_of(hand, which)->newer;
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
