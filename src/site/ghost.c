/* SPDX-License-Identifier: MIT */
#include "site/ghost.h"

#include <stdlib.h>

enum {
    KEYS_WANTED = 8192, /* in the largest simulated cache; determines the sample */
    KEYS_MAX = 4 * KEYS_WANTED,
    ENTRY_BYTES = 2048, /* assumed size of an entry */
    ENTRY_SHARE = 8     /* of the smallest cache; larger entries are too few for an estimate */
};

/* A node is known by its index; 0 is none. */
struct node {
    uint64_t hash;
    size_t size_bytes;
    uint32_t newer, older, chain;
    bool visited;
};

struct mini {
    size_t bytes, bytes_max;
    uint32_t count, count_max;
    uint32_t made, free; /* nodes ever used, and the first free one */
    uint32_t newest, oldest, hand;
    struct node *nodes;
    uint32_t *buckets;
};

struct site_ghost {
    struct mini mini[SITE_CACHE_SIZES];
    enum site_cache_policy policy;
    unsigned shift; /* one key of 2^shift */
    uint32_t bucket_mask;
    size_t entry_max;
    void (*forget)(void *context, uint64_t hash);
    void *context;
};

/* ---- the queue ---- */

static void mini_push(struct mini *m, uint32_t at)
{
    struct node *node = &m->nodes[at];
    node->newer = 0;
    node->older = m->newest;
    if (m->newest)
        m->nodes[m->newest].newer = at;
    else
        m->oldest = at;
    m->newest = at;
}

static void mini_unlink(struct mini *m, uint32_t at)
{
    const struct node *node = &m->nodes[at];
    if (m->hand == at)
        m->hand = node->newer;
    if (node->newer)
        m->nodes[node->newer].older = node->older;
    else
        m->newest = node->older;
    if (node->older)
        m->nodes[node->older].newer = node->newer;
    else
        m->oldest = node->newer;
}

/* The same algorithm as in site/eviction.c. */
static uint32_t mini_sieve(struct site_ghost *ghost, struct mini *m)
{
    uint32_t hand = m->hand ? m->hand : m->oldest;
    while (m->nodes[hand].visited) {
        m->nodes[hand].visited = false;
        ghost->forget(ghost->context, m->nodes[hand].hash);
        hand = m->nodes[hand].newer ? m->nodes[hand].newer : m->oldest;
    }
    m->hand = hand;
    return hand;
}

/* ---- the table ---- */

static uint32_t *mini_bucket(const struct site_ghost *ghost, struct mini *m, uint64_t hash)
{
    return &m->buckets[hash & ghost->bucket_mask];
}

static uint32_t mini_find(const struct site_ghost *ghost, struct mini *m, uint64_t hash)
{
    uint32_t at = *mini_bucket(ghost, m, hash);
    while (at && m->nodes[at].hash != hash)
        at = m->nodes[at].chain;
    return at;
}

static void mini_evict(struct site_ghost *ghost, struct mini *m)
{
    uint32_t at = ghost->policy == SITE_CACHE_LRU ? m->oldest : mini_sieve(ghost, m);
    struct node *node = &m->nodes[at];
    uint32_t *link = mini_bucket(ghost, m, node->hash);
    while (*link != at)
        link = &m->nodes[*link].chain;
    *link = node->chain;
    mini_unlink(m, at);
    m->bytes -= node->size_bytes;
    m->count--;
    ghost->forget(ghost->context, node->hash);
    node->chain = m->free;
    m->free = at;
}

static void mini_insert(struct site_ghost *ghost, struct mini *m, uint64_t hash, size_t size_bytes)
{
    while (m->count > 0 && (m->bytes + size_bytes > m->bytes_max || m->count == m->count_max))
        mini_evict(ghost, m);
    uint32_t at = m->free ? m->free : ++m->made;
    if (at == m->free)
        m->free = m->nodes[at].chain;
    uint32_t *bucket = mini_bucket(ghost, m, hash);
    m->nodes[at] = (struct node){ .hash = hash, .size_bytes = size_bytes, .chain = *bucket };
    *bucket = at;
    mini_push(m, at);
    m->bytes += size_bytes;
    m->count++;
}

static void mini_use(const struct site_ghost *ghost, struct mini *m, uint32_t at)
{
    if (ghost->policy == SITE_CACHE_SIEVE) {
        m->nodes[at].visited = true;
    } else if (at != m->newest) {
        mini_unlink(m, at);
        mini_push(m, at);
    }
}

/* ---- all of them ---- */

static bool allocate_minis(struct site_ghost *ghost, struct site_cache_limits limits)
{
    size_t keys = limits.entries >> ghost->shift;
    keys = keys < 1 ? 1 : keys > KEYS_MAX ? KEYS_MAX : keys;
    uint32_t buckets = 1;
    while (buckets < keys)
        buckets *= 2;
    ghost->bucket_mask = buckets - 1;
    for (unsigned i = 0; i < SITE_CACHE_SIZES; i++) {
        struct mini *m = &ghost->mini[i];
        m->bytes_max = ((limits.bytes / 2) >> ghost->shift) << i;
        m->count_max = (uint32_t)keys;
        m->nodes = calloc(keys + 1, sizeof(*m->nodes));
        m->buckets = calloc(buckets, sizeof(*m->buckets));
        if (!m->nodes || !m->buckets)
            return false;
    }
    return true;
}

struct site_ghost *site_ghost_new(struct site_cache_limits limits,
                                  void (*forget)(void *context, uint64_t hash), void *context)
{
    struct site_ghost *ghost = calloc(1, sizeof(*ghost));
    size_t keys = limits.bytes / ENTRY_BYTES * 4;
    keys = keys < limits.entries ? keys : limits.entries;
    if (!ghost || keys == 0) {
        free(ghost);
        return NULL;
    }
    ghost->policy = limits.policy;
    ghost->forget = forget;
    ghost->context = context;
    while (keys >> ghost->shift > KEYS_WANTED)
        ghost->shift++;
    ghost->entry_max = ((limits.bytes / 2) >> ghost->shift) / ENTRY_SHARE;
    if (allocate_minis(ghost, limits))
        return ghost;
    site_ghost_free(ghost);
    return NULL;
}

void site_ghost_free(struct site_ghost *ghost)
{
    for (unsigned i = 0; ghost && i < SITE_CACHE_SIZES; i++) {
        free(ghost->mini[i].nodes);
        free(ghost->mini[i].buckets);
    }
    free(ghost);
}

/* Entries with descriptors are left out: descriptors limit them, not bytes. */
bool site_ghost_watches(const struct site_ghost *ghost, const struct site_cache_entry *entry)
{
    return ghost && entry->hash >> 1 >> (63 - ghost->shift) == 0 && entry->descriptors == 0 &&
           entry->size_bytes <= ghost->entry_max;
}

bool site_ghost_lookup(struct site_ghost *ghost, const struct site_cache_entry *entry,
                       uint64_t misses[SITE_CACHE_SIZES])
{
    bool known = true;
    for (unsigned i = 0; i < SITE_CACHE_SIZES; i++) {
        struct mini *m = &ghost->mini[i];
        uint32_t at = mini_find(ghost, m, entry->hash);
        if (at) {
            mini_use(ghost, m, at);
            continue;
        }
        known = false;
        misses[i] += UINT64_C(1) << ghost->shift;
        mini_insert(ghost, m, entry->hash, entry->size_bytes);
    }
    return known;
}
