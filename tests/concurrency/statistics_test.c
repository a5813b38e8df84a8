/* SPDX-License-Identifier: MIT
 *
 * Threads that count, come and go, while others read: no sum ever falls, and in
 * the end nothing is missing.
 */
#include "stats/blocks.h"
#include "stats/snapshot.h"
#include "stats/writer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

enum { WRITERS = 4, LIVES = 200, REQUESTS = 500, READERS = 2 };

static struct stats_segment segment;
static _Atomic unsigned writing;

/* Many short-lived writers, each with a block that another one had before. */
static void *write_some(void *unused)
{
    (void)unused;
    for (unsigned life = 0; life < LIVES; life++) {
        struct stats_writer writer;
        stats_writer_open(&writer, &segment);
        for (uint64_t i = 0; i < REQUESTS; i++) {
            stats_writer_add(&writer, STATS_connections_accepted, 1);
            stats_writer_add(&writer, STATS_requests, 1);
            struct stats_row *row = stats_writer_row(&writer, (unsigned)(i % 3));
            if (row)
                stats_writer_record(&writer, &row->latency, i << i % 20, 1);
            stats_writer_add(&writer, STATS_connections_closed, 1);
        }
        stats_writer_close(&writer);
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

static void *read_on(void *failed)
{
    uint64_t requests = 0, durations = 0;
    while (atomic_load(&writing) > 0) {
        char why[STATS_WHY_MAX];
        struct stats_snapshot *snapshot = stats_snapshot_take(segment.name, why);
        if (!snapshot) {
            atomic_store((_Atomic bool *)failed, true);
            return NULL;
        }
        uint64_t now = snapshot->counter[STATS_requests];
        uint64_t timed = snapshot->histogram[STATS_HISTOGRAM_latency].count;
        if (now < requests || timed < durations)
            atomic_store((_Atomic bool *)failed, true);
        requests = now;
        durations = timed;
        stats_snapshot_free(snapshot);
    }
    return NULL;
}

static void sums_never_fall_and_end_exact(void **state)
{
    (void)state;
    pthread_t writers[WRITERS], readers[READERS];
    _Atomic bool failed = false;
    int why;
    assert_int_equal(stats_segment_create(&segment, &why), 0);
    assert_int_equal(why, 0);
    atomic_store(&writing, WRITERS);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_some, NULL), 0);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &failed), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i], NULL), 0);
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_false(atomic_load(&failed));

    char text[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(segment.name, text);
    assert_non_null(snapshot);
    uint64_t total = (uint64_t)WRITERS * LIVES * REQUESTS;
    assert_int_equal(snapshot->counter[STATS_requests], total);
    assert_int_equal(snapshot->histogram[STATS_HISTOGRAM_latency].count, total);
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 0);
    assert_true(snapshot->part_count <= WRITERS);
    for (size_t i = 0; i < snapshot->part_count; i++)
        assert_int_equal(snapshot->parts[i].owner, 0);
    stats_snapshot_free(snapshot);
    stats_segment_remove(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_never_fall_and_end_exact),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
