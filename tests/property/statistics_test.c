/* SPDX-License-Identifier: MIT
 *
 * A reader believes nothing: whatever bytes a segment is made of, it gives a
 * snapshot or one sentence, and touches nothing beyond them.
 */
#include "stats/arena.h"
#include "stats/snapshot.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 400, CHANGES_MAX = 12 };

/* A segment with a bit of everything: its head, and its only arena. */
static struct stats_copy copy_of_a_segment(void)
{
    struct stats_segment segment;
    struct stats_writer writer;
    struct stats_copy copy;
    char text[STATS_WHY_MAX];
    int why;
    assert_int_equal(stats_segment_create(&segment, &why), 0);
    for (unsigned i = 0; i < 3; i++) {
        stats_writer_open(&writer, &segment);
        for (unsigned site = 0; site < 4; site++) {
            struct stats_row *row = stats_writer_row(&writer, site);
            assert_non_null(row);
            stats_writer_add_to_cell(&row->requests, 1);
            stats_writer_record(&writer, &row->latency, UINT64_C(1000) << 2 * site, 1);
        }
        stats_writer_record(&writer, &writer.block->sending, 12345, 1);
        if (i < 2)
            writer = (struct stats_writer){ 0 }; /* the next one gets another block */
    }
    stats_segment_add_site(&segment, "a site");
    assert_true(stats_copy_here(&segment, &copy, text));
    assert_int_equal(copy.arena_count, 1);
    stats_writer_close(&writer);
    stats_segment_remove(&segment);
    return copy;
}

/* A copy that ends where unreadable memory begins. */
static struct span guarded(struct guard *guard, struct span bytes)
{
    size_t size = (bytes.len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    char *room = guard_room(guard, size > 0 ? size : CACHE_LINE);
    memcpy(room, bytes.at, bytes.len);
    return span_of(room, bytes.len);
}

static void read_some(struct span head, struct span arena)
{
    struct guard guards[2];
    char why[STATS_WHY_MAX] = "";
    struct span arenas[] = { guarded(&guards[1], arena) };
    struct stats_copy copy = { guarded(&guards[0], head), 1, arenas };
    struct stats_snapshot *snapshot = stats_snapshot_of(&copy, why);
    if (snapshot) {
        assert_true(snapshot->site_count >= 1 && snapshot->site_count <= STATS_SITES_MAX);
        for (unsigned i = 0; i < snapshot->site_count; i++)
            assert_true(strlen(snapshot->site[i].name) < STATS_SITE_NAME_MAX);
        assert_true(strlen(snapshot->reload_error) < STATS_TEXT_MAX);
        (void)stats_snapshot_quantile_ns(&snapshot->histogram[0], 0.99);
    } else {
        assert_true(why[0] != '\0' && strlen(why) < sizeof(why));
    }
    stats_snapshot_free(snapshot);
    guard_done(&guards[0]);
    guard_done(&guards[1]);
}

static void a_segment_of_any_length_is_read_or_refused(void **state)
{
    (void)state;
    struct stats_copy copy = copy_of_a_segment();
    struct random_source random = random_start();
    read_some(copy.head, copy.arena[0]);
    read_some(span_of("", 0), copy.arena[0]);
    read_some(copy.head, span_of("", 0));
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t most = random_below(&random, copy.arena[0].len);
        read_some(copy.head, span_first(copy.arena[0], most));
        read_some(span_first(copy.head, random_below(&random, copy.head.len)), copy.arena[0]);
    }
    stats_copy_done(&copy);
}

/* Numbers that hurt, if any do. */
static uint64_t hostile(struct random_source *random, size_t len)
{
    switch (random_below(random, 6)) {
    case 0:
        return UINT64_MAX;
    case 1:
        return len - random_below(random, 256);
    case 2:
        return STATS_ARENA_BYTES - 64 * random_below(random, 64);
    case 3:
        return 64 * random_below(random, len / 64);
    case 4:
        return random_u64(random);
    default:
        return random_below(random, 100);
    }
}

static struct span spoiled(struct random_source *random, struct span bytes, char *into)
{
    memcpy(into, bytes.at, bytes.len);
    for (size_t i = random_below(random, CHANGES_MAX); i > 0; i--) {
        uint64_t value = hostile(random, bytes.len);
        size_t width = random_one_in(random, 2) ? 4 : 8;
        size_t most = random_one_in(random, 2) ? bytes.len : CACHE_LINE * 4;
        size_t at = random_below(random, most - width);
        memcpy(into + at / 4 * 4, &value, width);
    }
    return span_of(into, bytes.len);
}

static void a_segment_with_random_bytes_is_read_or_refused(void **state)
{
    (void)state;
    struct stats_copy copy = copy_of_a_segment();
    struct random_source random = random_start();
    char *head = malloc(copy.head.len), *arena = malloc(copy.arena[0].len);
    assert_true(head && arena);
    for (unsigned round = 0; round < ROUNDS * 5; round++) {
        read_some(copy.head, spoiled(&random, copy.arena[0], arena));
        if (round % 4 == 0)
            read_some(spoiled(&random, copy.head, head), copy.arena[0]);
    }
    free(head);
    free(arena);
    stats_copy_done(&copy);
}

/* The words that lead somewhere, one by one. The arena is left out. */
static void an_arena_with_places_outside_is_damaged(void **state)
{
    (void)state;
    struct stats_copy copy = copy_of_a_segment();
    struct span arena = copy.arena[0];
    char *bytes = (char *)(uintptr_t)arena.at;
    struct stats_arena_header *header = (struct stats_arena_header *)(void *)bytes;
    uint32_t first = atomic_load(&header->first_block);
    struct stats_block *block = (struct stats_block *)(void *)(bytes + first);
    char why[STATS_WHY_MAX];

    uint32_t next = atomic_load(&block->next);
    atomic_store(&block->next, first); /* round in circles */
    assert_true(stats_copy_survey(arena).damaged);
    atomic_store(&block->next, next);
    _Atomic uint32_t *words[] = { &header->first_block, &block->next, &block->row[5],
                                  &block->sending.run[1] };
    static const uint32_t places[] = { 1, 32, UINT32_MAX, STATS_ARENA_BYTES,
                                       STATS_ARENA_BYTES - 64 };
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            uint32_t before = atomic_load(words[w]);
            atomic_store(words[w], places[p]);
            assert_true(stats_copy_survey(arena).damaged);
            struct span arenas[] = { arena };
            struct stats_copy again = { copy.head, 1, arenas };
            struct stats_snapshot *snapshot = stats_snapshot_of(&again, why);
            assert_int_equal(snapshot->damaged, 1);
            assert_int_equal(snapshot->part_count, 0);
            stats_snapshot_free(snapshot);
            atomic_store(words[w], before);
        }
    struct stats_snapshot *snapshot = stats_snapshot_of(&copy, why);
    assert_int_equal(snapshot->damaged, 0);
    assert_int_equal(snapshot->part_count, 3);
    stats_snapshot_free(snapshot);
    stats_copy_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_of_any_length_is_read_or_refused),
        cmocka_unit_test(a_segment_with_random_bytes_is_read_or_refused),
        cmocka_unit_test(an_arena_with_places_outside_is_damaged),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
