/* SPDX-License-Identifier: MIT
 *
 * Free blocks form a stack. Its top is a place and a number, which are compared and changed
 * together. A block that was taken and given back in between therefore has another number
 * (no ABA problem). A process that is killed between two steps loses at most a block, and the
 * counts in that block stay.
 *
 * A pair may rise in one block and fall in another, when a connection moves between threads.
 * Only the sum over the blocks of a process is even. `settled` holds the difference that each
 * block had when its writer got it.
 */
#include "stats/blocks.h"

#include "os/process.h"
#include "stats/arena.h"

#include <stdlib.h>
#include <unistd.h>

static struct stats_block *block_at(const struct stats_segment *segment, uint32_t place)
{
    return place == 0 ? NULL : (struct stats_block *)(void *)(segment->base + place);
}

static uint64_t counted(const struct stats_block *block, enum stats_counter counter)
{
    return atomic_load_explicit(&block->counter[counter], memory_order_relaxed);
}

/* ---- the free list ---- */

static struct stats_block *pop_free(const struct stats_segment *segment)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    uint64_t top = atomic_load(&header->free_blocks), next;
    do {
        if ((uint32_t)top == 0)
            return NULL;
        next = ((top >> 32) + 1) << 32 | atomic_load(&block_at(segment, (uint32_t)top)->next_free);
    } while (!atomic_compare_exchange_weak(&header->free_blocks, &top, next));
    return block_at(segment, (uint32_t)top);
}

void stats_blocks_put(const struct stats_segment *segment, struct stats_block *block)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    uint32_t place = (uint32_t)((char *)block - segment->base);
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].kind == STATS_KIND_GAUGE)
            atomic_store_explicit(&block->counter[i], 0, memory_order_relaxed);
    atomic_store(&block->owner, 0);
    uint64_t top = atomic_load(&header->free_blocks);
    do
        atomic_store(&block->next_free, (uint32_t)top);
    while (
        !atomic_compare_exchange_weak(&header->free_blocks, &top, ((top >> 32) + 1) << 32 | place));
}

/* Creates a block and links it where readers find it. */
static struct stats_block *make_block(const struct stats_segment *segment)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    uint32_t place = stats_arena_take(segment, sizeof(struct stats_block));
    struct stats_block *block = block_at(segment, place);
    if (!block) {
        atomic_fetch_add(&header->unseen, 1);
        return NULL;
    }
    uint32_t first = atomic_load(&header->first_block);
    do
        atomic_store(&block->next, first);
    while (!atomic_compare_exchange_weak(&header->first_block, &first, place));
    return block;
}

struct stats_block *stats_blocks_get(const struct stats_segment *segment)
{
    struct stats_block *block = pop_free(segment);
    if (!block)
        block = make_block(segment);
    if (!block)
        return NULL;
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        block->settled[i] =
            (int64_t)(counted(block, stats_pairs[i].up) - counted(block, stats_pairs[i].down));
    atomic_store(&block->owner, (int32_t)getpid());
    return block;
}

/* ---- dead processes ---- */

/* Empties the free list, and returns the place of its first block. */
static uint32_t detach_free(const struct stats_segment *segment)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    uint64_t top = atomic_load(&header->free_blocks);
    while (!atomic_compare_exchange_weak(&header->free_blocks, &top, ((top >> 32) + 1) << 32))
        continue;
    return (uint32_t)top;
}

static int compare_places(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* A block without owner that is not in the detached list is about to be put by its last owner. So
 * it is left alone: a block that is put twice would get two writers. */
static void recover_places(const struct stats_segment *segment, uint32_t *places, bool *put,
                           size_t count)
{
    uint32_t place = detach_free(segment);
    for (size_t i = 0; i < count && place != 0; i++) {
        const uint32_t *found = bsearch(&place, places, count, sizeof(place), compare_places);
        if (!found || put[found - places])
            break; /* the list is damaged */
        put[found - places] = true;
        struct stats_block *block = block_at(segment, place);
        place = atomic_load(&block->next_free);
        stats_blocks_put(segment, block);
    }
    for (size_t i = 0; i < count; i++) {
        struct stats_block *block = block_at(segment, places[i]);
        pid_t owner = atomic_load(&block->owner);
        if (!put[i] && owner > 0 && !os_process_exists(owner))
            stats_blocks_put(segment, block);
    }
}

/* Fills in the places of all blocks, at most `most`, and returns how many there are. */
static size_t list_blocks(const struct stats_segment *segment, uint32_t *ret_places, size_t most)
{
    const struct stats_arena_header *header = stats_blocks_header(segment);
    uint32_t place = atomic_load(&header->first_block);
    const uint64_t end = sizeof(*header) + atomic_load(&header->taken);
    size_t count = 0;
    while (count < most && place >= sizeof(*header) && place % CACHE_LINE == 0 &&
           place + sizeof(struct stats_block) <= end) {
        ret_places[count++] = place;
        place = atomic_load(&block_at(segment, place)->next);
    }
    return count;
}

void stats_blocks_recover(const struct stats_segment *segment)
{
    const size_t most = STATS_ARENA_BYTES / sizeof(struct stats_block);
    uint32_t *places = calloc(most, sizeof(*places));
    bool *put = calloc(most, sizeof(*put));
    if (places && put) {
        size_t count = list_blocks(segment, places, most);
        qsort(places, count, sizeof(*places), compare_places);
        recover_places(segment, places, put, count);
    } else {
        (void)detach_free(segment);
    }
    free(places);
    free(put);
}

/* Raises `down` by what the process had open, in one of its blocks. Returns that number. */
static uint64_t settle_pair(const struct stats_segment *segment, pid_t pid, unsigned pair)
{
    struct stats_block *last = NULL;
    int64_t open = 0;
    uint32_t place = atomic_load(&stats_blocks_header(segment)->first_block);
    for (struct stats_block *b; (b = block_at(segment, place)); place = atomic_load(&b->next)) {
        if (atomic_load(&b->owner) != (int32_t)pid)
            continue;
        last = b;
        open += (int64_t)(counted(b, stats_pairs[pair].up) - counted(b, stats_pairs[pair].down)) -
                b->settled[pair];
    }
    if (!last || open <= 0)
        return 0;
    atomic_store(&last->counter[stats_pairs[pair].down],
                 counted(last, stats_pairs[pair].down) + (uint64_t)open);
    if (stats_pairs[pair].down == STATS_connections_closed)
        atomic_store(&last->counter[STATS_connections_lost],
                     counted(last, STATS_connections_lost) + (uint64_t)open);
    return (uint64_t)open;
}

uint64_t stats_blocks_settle(const struct stats_segment *segment, pid_t pid)
{
    if (!segment || !segment->base)
        return 0;
    uint64_t lost = 0;
    for (unsigned i = 0; i < STATS_PAIRS; i++) {
        uint64_t open = settle_pair(segment, pid, i);
        lost += i == STATS_PAIR_connections_open ? open : 0;
    }
    uint32_t place = atomic_load(&stats_blocks_header(segment)->first_block);
    for (struct stats_block *b; (b = block_at(segment, place)); place = atomic_load(&b->next))
        if (atomic_load(&b->owner) == (int32_t)pid)
            stats_blocks_put(segment, b);
    return lost;
}
