/* SPDX-License-Identifier: MIT
 *
 * The last minute: what the master writes down each second, and what a reader makes of it.
 */
#include "stats/moments.h"
#include "stats/writer.h"
#include "unit/stats/own.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct stats_moments moments;

static int begin_minute(void **state)
{
    moments = (struct stats_moments){ 0 };
    return make_segment(state);
}

static void count(struct stats_writer *writer, unsigned times, uint64_t ns)
{
    stats_writer_add(writer, STATS_requests, times);
    stats_writer_add(writer, STATS_STATUS_404, times);
    stats_writer_record(writer, &stats_writer_row(writer, 1)->latency, ns, times);
}

static void a_moment_has_the_totals_of_all_and_the_latency_since(void **state)
{
    (void)state;
    struct stats_writer a, b;
    stats_writer_open(&a, &segment);
    stats_writer_open(&b, &segment);
    count(&a, 5, 1000000000);
    (void)stats_moments_take(&moments, &segment, 1000);
    count(&a, 99, 2000000);
    count(&b, 1, 8000000);
    (void)stats_moments_take(&moments, &segment, 2000);
    (void)stats_moments_take(&moments, &segment, 3000);
    struct stats_snapshot *s = take_snapshot();
    assert_int_equal(s->moment_count, 3);
    assert_int_equal(s->moment[0].at_ns, 1000);
    assert_int_equal(s->moment[0].counter[STATS_requests], 5);
    assert_int_equal(s->moment[0].latency_count, 0); /* of an unknown time */
    assert_int_equal(s->moment[1].counter[STATS_requests], 105);
    assert_int_equal(s->moment[1].by_class[3], 105);
    assert_int_equal(s->moment[1].latency_count, 100);
    for (unsigned i = 0; i < 3; i++)
        assert_true(s->moment[1].latency_ns[i] > 1980000 && s->moment[1].latency_ns[i] < 2020000);
    assert_true(s->moment[1].latency_ns[3] > 7920000 && s->moment[1].latency_ns[3] < 8080000);
    assert_int_equal(s->moment[2].counter[STATS_requests], 105);
    assert_int_equal(s->moment[2].latency_count, 0);
    assert_int_equal(s->moment[2].latency_ns[0], 0);
    stats_snapshot_free(s);
    stats_writer_close(&a);
    stats_writer_close(&b);
}

static void the_last_moments_are_kept_oldest_first(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= STATS_MOMENTS + 10; i++)
        (void)stats_moments_take(&moments, &segment, i);
    struct stats_snapshot *s = take_snapshot();
    assert_int_equal(s->moment_count, STATS_MOMENTS);
    for (unsigned i = 0; i < STATS_MOMENTS; i++)
        assert_int_equal(s->moment[i].at_ns, i + 11);
    stats_snapshot_free(s);
}

static void only_the_master_of_the_segment_adds_moments(void **state)
{
    (void)state;
    atomic_store(&segment.header->master, 1);
    (void)stats_moments_take(&moments, &segment, 1000);
    struct stats_snapshot *s = take_snapshot();
    assert_int_equal(s->moment_count, 0);
    stats_snapshot_free(s);
    atomic_store(&segment.header->master, (int32_t)getpid());
}

/* Moments that cannot follow each other are left out, whatever the segment says. */
static void a_reader_trusts_no_moment(void **state)
{
    (void)state;
    struct stats_header *header = segment.header;
    for (unsigned i = 1; i <= 5; i++)
        (void)stats_moments_take(&moments, &segment, i * 10);
    header->moment[2].at_ns = 15;
    header->moment[3].at_ns = 0;
    struct stats_snapshot *s = take_snapshot();
    assert_int_equal(s->moment_count, 3);
    assert_int_equal(s->moment[2].at_ns, 50);
    stats_snapshot_free(s);
    header->moments = UINT64_MAX - 2;
    memset(header->moment, 0xff, sizeof(header->moment));
    s = take_snapshot();
    assert_int_equal(s->moment_count, 1);
    stats_snapshot_free(s);
}

#define WITH_SEGMENT(test) cmocka_unit_test_setup_teardown(test, begin_minute, remove_segment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SEGMENT(a_moment_has_the_totals_of_all_and_the_latency_since),
        WITH_SEGMENT(the_last_moments_are_kept_oldest_first),
        WITH_SEGMENT(only_the_master_of_the_segment_adds_moments),
        WITH_SEGMENT(a_reader_trusts_no_moment),
    };
    return cmocka_run_group_tests_name("moments", tests, NULL, NULL);
}
