/* SPDX-License-Identifier: MIT */
#include "stats/writer.h"

#include "stats/arena.h"
#include "stats/blocks.h"

#include <stdlib.h>
#include <string.h>

static struct stats_block *private_block(void)
{
    /* Used without memory, by several threads at once: its contents mean nothing. */
    static struct stats_block last_resort;
    struct stats_block *block = aligned_alloc(CACHE_LINE, sizeof(*block));
    if (!block)
        return &last_resort;
    memset(block, 0, sizeof(*block));
    atomic_store_explicit(&block->owner, 1, memory_order_relaxed); /* marks memory from malloc */
    return block;
}

void stats_writer_open(struct stats_writer *writer, const struct stats_segment *segment)
{
    *writer = (struct stats_writer){ 0 };
    if (segment && segment->base)
        writer->block = stats_blocks_get(segment);
    if (writer->block)
        writer->segment = segment;
    else
        writer->block = private_block();
}

void stats_writer_close(struct stats_writer *writer)
{
    if (writer->segment)
        stats_blocks_put(writer->segment, writer->block);
    else if (writer->block && atomic_load_explicit(&writer->block->owner, memory_order_relaxed))
        free(writer->block);
    *writer = (struct stats_writer){ 0 };
}

static uint32_t new_part(const struct stats_writer *writer, _Atomic uint32_t *part, size_t bytes)
{
    uint32_t place = stats_arena_take(writer->segment, bytes);
    if (place != 0)
        atomic_store_explicit(part, place, memory_order_release);
    return place;
}

struct stats_row *stats_writer_new_row(const struct stats_writer *writer, unsigned site)
{
    CHECK(site < STATS_SITES_MAX);
    if (!stats_writer_visible(writer))
        return NULL;
    uint32_t place = new_part(writer, &writer->block->row[site], sizeof(struct stats_row));
    return place == 0 ? NULL : (struct stats_row *)(void *)(writer->segment->base + place);
}

uint32_t stats_writer_new_run(const struct stats_writer *writer, struct stats_durations *durations,
                              unsigned run)
{
    return new_part(writer, &durations->run[run], STATS_RUN_BUCKETS * sizeof(stats_cell));
}
