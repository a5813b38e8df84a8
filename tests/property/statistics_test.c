/* SPDX-License-Identifier: MIT
 *
 * A reader believes nothing: whatever bytes a segment is made of, it gives a
 * snapshot or one sentence, and touches nothing beyond them.
 */
#include "stats/snapshot.h"
#include "stats/writer.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 400, CHANGES_MAX = 12 };

/* A segment with a bit of everything, copied: its length. */
static size_t make(char **ret_bytes)
{
    struct stats_segment segment;
    struct stats_writer writer;
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
    (void)stats_segment_site(&segment, "a site");
    size_t len = atomic_load(&stats_segment_header(&segment)->taken);
    *ret_bytes = malloc(len);
    assert_non_null(*ret_bytes);
    memcpy(*ret_bytes, segment.base, len);
    stats_writer_close(&writer);
    stats_segment_remove(&segment);
    return len;
}

/* At the end of a page that is followed by forbidden memory. */
static void read_some(const char *bytes, size_t len)
{
    struct guard guard;
    char why[STATS_WHY_MAX] = "";
    size_t size = (len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    char *room = guard_room(&guard, size > 0 ? size : CACHE_LINE);
    memcpy(room, bytes, len);
    struct stats_snapshot *snapshot = stats_snapshot_of(room, len, why);
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
    guard_done(&guard);
}

static void a_segment_of_any_length_is_read_or_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t len = make(&bytes);
    struct random_source random = random_start();
    read_some(bytes, len);
    read_some(bytes, 0);
    for (unsigned round = 0; round < ROUNDS; round++)
        read_some(bytes, random_below(&random, len));
    free(bytes);
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
        return STATS_SEGMENT_BYTES - 64 * random_below(random, 64);
    case 3:
        return 64 * random_below(random, len / 64);
    case 4:
        return random_u64(random);
    default:
        return random_below(random, 100);
    }
}

static void a_segment_with_random_bytes_is_read_or_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t len = make(&bytes);
    struct random_source random = random_start();
    char *spoiled = malloc(len);
    assert_non_null(spoiled);
    for (unsigned round = 0; round < ROUNDS * 5; round++) {
        memcpy(spoiled, bytes, len);
        for (size_t i = random_below(&random, CHANGES_MAX); i > 0; i--) {
            uint64_t value = hostile(&random, len);
            size_t width = random_one_in(&random, 2) ? 4 : 8;
            size_t first = random_one_in(&random, 2) ? 0 : sizeof(struct stats_header);
            size_t at = first + random_below(&random, len - first - width);
            memcpy(spoiled + at / 4 * 4, &value, width);
        }
        read_some(spoiled, len);
    }
    free(spoiled);
    free(bytes);
}

/* The words that lead somewhere, one by one. */
static void a_segment_with_places_outside_is_refused(void **state)
{
    (void)state;
    char *bytes;
    size_t len = make(&bytes);
    struct stats_header *header = (struct stats_header *)(void *)bytes;
    uint32_t first = atomic_load(&header->first_block);
    struct stats_block *block = (struct stats_block *)(void *)(bytes + first);
    char why[STATS_WHY_MAX];

    atomic_store(&block->next, first); /* round in circles */
    assert_null(stats_snapshot_of(bytes, len, why));
    atomic_store(&block->next, 0);
    _Atomic uint32_t *words[] = { &header->first_block, &block->next, &block->row[5],
                                  &block->sending.run[1] };
    static const uint32_t places[] = { 1, 64, UINT32_MAX, STATS_SEGMENT_BYTES,
                                       STATS_SEGMENT_BYTES - 64 };
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
        for (size_t p = 0; p < sizeof(places) / sizeof(places[0]); p++) {
            uint32_t before = atomic_load(words[w]);
            atomic_store(words[w], places[p]);
            assert_null(stats_snapshot_of(bytes, len, why));
            assert_true(strstr(why, "damaged") != NULL);
            atomic_store(words[w], before);
        }
    struct stats_snapshot *snapshot = stats_snapshot_of(bytes, len, why);
    assert_non_null(snapshot);
    stats_snapshot_free(snapshot);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_of_any_length_is_read_or_refused),
        cmocka_unit_test(a_segment_with_random_bytes_is_read_or_refused),
        cmocka_unit_test(a_segment_with_places_outside_is_refused),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
