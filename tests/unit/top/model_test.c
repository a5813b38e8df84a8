/* SPDX-License-Identifier: MIT
 *
 * Rates, history and fairness, from views made up here.
 */
#include "base/histogram.h"
#include "top/history.h"
#include "top/rates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

/* A view with storage of its own. */
struct sight {
    struct view view;
    struct stats_snapshot snapshot;
    struct stats_site site[2];
    struct stats_part parts[8];
};

static struct sight before, now;

static void see(struct sight *sight, uint64_t at_ns, uint64_t requests)
{
    memset(sight, 0, sizeof(*sight));
    sight->view = (struct view){ .snapshot = &sight->snapshot, .read_ns = at_ns };
    sight->snapshot.started_s = 1000;
    sight->snapshot.master = 100;
    sight->snapshot.running = true;
    sight->snapshot.site_count = 2;
    sight->snapshot.site = sight->site;
    sight->snapshot.parts = sight->parts;
    sight->snapshot.counter[STATS_requests] = requests;
    sight->site[1].requests = sight->site[1].by_class[1] = requests;
}

static void last_for(struct sight *sight, uint64_t ns, uint64_t times)
{
    struct stats_counts *counts = &sight->snapshot.histogram[STATS_HISTOGRAM_latency];
    counts->bucket[histogram_index(ns >> STATS_UNIT_BITS, STATS_BITS)] += times;
    counts->count += times;
    counts->sum_ns += ns * times;
}

static void remember(struct sight *sight, uint64_t at_ns, uint64_t requests, uint64_t latency_ns)
{
    struct stats_moment *moment = &sight->snapshot.moment[sight->snapshot.moment_count++];
    *moment = (struct stats_moment){ .at_ns = at_ns, .latency_ns = { 0, 0, latency_ns, 0 } };
    moment->counter[STATS_requests] = requests;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 0.01 * fabs(b);
}

/* ---- rates ---- */

static void rates_are_of_the_time_between_two_views(void **state)
{
    (void)state;
    static struct top_rates rates;
    see(&before, 10 * SECOND, 1000);
    see(&now, 12 * SECOND, 1500);
    now.snapshot.counter[STATS_cache_bytes] = 77;
    now.snapshot.counter[STATS_STATUS_404] = 10;
    assert_true(top_rates_comparable(&before.view, &now.view));
    top_rates_between(&rates, &before.view, &now.view);
    assert_true(near(rates.seconds, 2));
    assert_true(near(rates.counter[STATS_requests], 250));
    assert_true(near(rates.by_class[1], 250));
    assert_true(rates.by_class[4] == 0);
    assert_true(near(rates.counter[STATS_STATUS_404], 5));
    assert_true(isnan(rates.counter[STATS_cache_bytes])); /* a gauge has no rate */
}

static void percentiles_are_of_the_requests_between_two_views(void **state)
{
    (void)state;
    static struct top_rates rates;
    see(&before, 10 * SECOND, 1000);
    last_for(&before, SECOND, 1000); /* slow, and long ago */
    see(&now, 11 * SECOND, 1100);
    last_for(&now, SECOND, 1000);
    last_for(&now, 1000000, 98);
    last_for(&now, 20000000, 2);
    top_rates_between(&rates, &before.view, &now.view);
    assert_int_equal(rates.histogram[STATS_HISTOGRAM_latency].count, 100);
    assert_true(near((double)rates.latency_ns[0], 1000000));
    assert_true(near((double)rates.latency_ns[1], 1000000));
    assert_true(near((double)rates.latency_ns[2], 20000000));
    assert_true(near((double)rates.latency_ns[3], 20000000));
    top_rates_between(&rates, &now.view, &now.view);
    assert_int_equal(rates.latency_ns[2], 0); /* nothing came */
}

static void the_first_sample_has_the_rates_that_the_server_remembers(void **state)
{
    (void)state;
    static struct top_rates rates;
    see(&now, 10 * SECOND, 1000);
    top_rates_between(&rates, NULL, &now.view);
    assert_true(rates.seconds == 0);
    assert_true(isnan(rates.counter[STATS_requests]) && isnan(rates.by_class[1]));
    remember(&now, 8 * SECOND, 500, 0);
    remember(&now, 9 * SECOND, 800, 4000);
    top_rates_between(&rates, NULL, &now.view);
    assert_true(near(rates.counter[STATS_requests], 300));
    assert_int_equal(rates.latency_ns[2], 4000);
}

static void another_server_is_not_compared(void **state)
{
    (void)state;
    see(&before, 10 * SECOND, 1000);
    see(&now, 11 * SECOND, 5);
    assert_false(top_rates_comparable(&before.view, &now.view)); /* it began anew */
    see(&now, 11 * SECOND, 2000);
    now.snapshot.started_s++;
    assert_false(top_rates_comparable(&before.view, &now.view));
    see(&now, 11 * SECOND, 2000);
    now.snapshot.master = 200; /* a successor, which goes on counting */
    assert_true(top_rates_comparable(&before.view, &now.view));
    see(&now, 10 * SECOND, 2000);
    assert_false(top_rates_comparable(&before.view, &now.view)); /* no time has passed */
}

/* A segment may say anything; a total that falls is no rate of 2^64. */
static void a_counter_that_falls_has_no_rate(void **state)
{
    (void)state;
    static struct top_rates rates;
    see(&before, 10 * SECOND, 1000);
    see(&now, 11 * SECOND, 1000);
    before.snapshot.counter[STATS_sent_bytes] = 500;
    before.snapshot.histogram[0].bucket[5] = 9;
    before.snapshot.histogram[0].count = 9;
    top_rates_between(&rates, &before.view, &now.view);
    assert_true(rates.counter[STATS_sent_bytes] == 0);
    assert_int_equal(rates.histogram[0].count, 0);
    assert_int_equal(rates.histogram[0].bucket[5], 0);
}

/* ---- history ---- */

static const uint64_t none[STATS_MOMENT_QUANTILES];
static struct top_history history;

static void chart(enum top_series series, uint64_t end_ns, uint64_t step_ns, float *out,
                  size_t count)
{
    top_history_chart(&history, series, end_ns, step_ns, out, count);
}

static void charts_begin_full(void **state)
{
    (void)state;
    float values[6];
    memset(&history, 0, sizeof(history));
    see(&now, 15 * SECOND, 1500);
    for (unsigned i = 10; i <= 15; i++)
        remember(&now, i * SECOND, i * 100, i * 1000);
    top_history_go_on(&history, &now.view, none);
    chart(TOP_SERIES_COUNTERS + STATS_requests, 15 * SECOND, SECOND, values, 6);
    assert_true(isnan(values[0]));
    for (unsigned i = 1; i < 6; i++)
        assert_true(near(values[i], 100));
    chart(TOP_SERIES_LATENCY + 2, 15 * SECOND, 2 * SECOND, values, 2);
    assert_true(near(values[0], 13000)); /* the longest of two seconds */
    assert_true(near(values[1], 15000));
}

static void steps_of_any_length_use_what_is_known(void **state)
{
    (void)state;
    float values[4];
    memset(&history, 0, sizeof(history));
    for (unsigned i = 0; i <= 4; i++) {
        see(&now, (10 + i) * SECOND, i * i * 100); /* 100, 300, 500, 700 a second */
        top_history_go_on(&history, &now.view, none);
    }
    chart(TOP_SERIES_COUNTERS + STATS_requests, 14 * SECOND, 2 * SECOND, values, 2);
    assert_true(near(values[0], 200));
    assert_true(near(values[1], 600));
    chart(TOP_SERIES_COUNTERS + STATS_requests, 14 * SECOND, SECOND / 2, values, 4);
    assert_true(near(values[0], 500) && near(values[1], 500));
    assert_true(near(values[2], 700) && near(values[3], 700));
    chart(TOP_SERIES_COUNTERS + STATS_requests, 13 * SECOND + SECOND / 2, SECOND, values, 1);
    assert_true(near(values[0], 600)); /* half of one, half of the other */
}

static void a_gap_is_filled_from_the_servers_moments(void **state)
{
    (void)state;
    float values[6];
    memset(&history, 0, sizeof(history));
    see(&now, 10 * SECOND, 0);
    top_history_go_on(&history, &now.view, none);
    see(&now, 16 * SECOND, 600);
    remember(&now, 9 * SECOND, 0, 0); /* known already */
    remember(&now, 13 * SECOND, 0, 0);
    remember(&now, 14 * SECOND, 600, 0);
    top_history_go_on(&history, &now.view, none);
    chart(TOP_SERIES_COUNTERS + STATS_requests, 16 * SECOND, SECOND, values, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_true(i == 3 ? near(values[i], 600) : values[i] == 0);
}

static void two_servers_are_not_joined(void **state)
{
    (void)state;
    float values[5];
    memset(&history, 0, sizeof(history));
    see(&now, 10 * SECOND, 0);
    top_history_go_on(&history, &now.view, none);
    see(&now, 11 * SECOND, 100);
    top_history_go_on(&history, &now.view, none);
    top_history_break(&history);
    see(&now, 13 * SECOND, 5000);
    top_history_go_on(&history, &now.view, none);
    see(&now, 14 * SECOND, 5200);
    top_history_go_on(&history, &now.view, none);
    chart(TOP_SERIES_COUNTERS + STATS_requests, 14 * SECOND, SECOND, values, 5);
    assert_true(isnan(values[0]));
    assert_true(near(values[1], 100));
    assert_true(isnan(values[2]) && isnan(values[3]));
    assert_true(near(values[4], 200));
}

static void history_forgets_the_oldest(void **state)
{
    (void)state;
    float value;
    memset(&history, 0, sizeof(history));
    for (unsigned i = 1; i <= TOP_STRETCHES + 10; i++) {
        see(&now, i * SECOND, i * 7);
        top_history_go_on(&history, &now.view, none);
    }
    chart(TOP_SERIES_COUNTERS + STATS_requests, (TOP_STRETCHES + 10) * SECOND,
          TOP_STRETCHES * SECOND, &value, 1);
    assert_true(near(value, 7));
    chart(TOP_SERIES_COUNTERS + STATS_requests, 5 * SECOND, SECOND, &value, 1);
    assert_true(isnan(value));
}

/* ---- workers ---- */

static void part(struct sight *sight, pid_t owner, uint32_t block, uint64_t requests)
{
    sight->parts[sight->snapshot.part_count++] =
        (struct stats_part){ .owner = owner, .block = block, .requests = requests };
}

static void workers_are_those_that_answer(void **state)
{
    (void)state;
    static struct top_workers workers;
    see(&before, 10 * SECOND, 0);
    see(&now, 12 * SECOND, 0);
    part(&before, 0, 64, 999); /* nobody's */
    part(&before, 100, 128, 0);
    part(&before, 101, 192, 100);
    part(&before, 101, 256, 50);
    part(&before, 102, 320, 10);
    part(&now, 0, 64, 999);
    part(&now, 100, 128, 0); /* the master */
    part(&now, 101, 192, 300);
    part(&now, 101, 256, 250);
    part(&now, 102, 320, 10);
    part(&now, 102, 384, 0);  /* a thread that only accepts */
    part(&now, 103, 448, 70); /* new: its time is unknown */
    top_rates_workers(&workers, &before.view, &now.view);
    assert_int_equal(workers.count, 7);
    assert_int_equal(workers.worker[0].pid, 101);
    assert_int_equal(workers.worker[0].thread, 0);
    assert_int_equal(workers.worker[0].threads, 2);
    assert_true(near(workers.worker[0].rate, 200));
    assert_int_equal(workers.worker[2].thread, 2);
    assert_true(near(workers.worker[2].rate, 100));
    assert_int_equal(workers.worker[3].pid, 102);
    assert_true(workers.worker[4].rate == 0);
    assert_true(isnan(workers.worker[6].rate));
    assert_int_equal(workers.serving, 3);
    assert_int_equal(workers.processes, 3);
    assert_true(near(workers.most_of_process, 200));
    assert_true(near(workers.most, 100));
    assert_true(near(workers.fairness, 2.0 / 3));
}

static void fairness_is_one_for_equal_rates_and_a_fraction_for_one_worker(void **state)
{
    (void)state;
    assert_true(top_rates_fairness(4, 40, 400) == 1);
    assert_true(top_rates_fairness(4, 40, 1600) == 0.25);
    assert_true(isnan(top_rates_fairness(4, 0, 0)));
    assert_true(isnan(top_rates_fairness(0, 0, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_of_the_time_between_two_views),
        cmocka_unit_test(percentiles_are_of_the_requests_between_two_views),
        cmocka_unit_test(the_first_sample_has_the_rates_that_the_server_remembers),
        cmocka_unit_test(another_server_is_not_compared),
        cmocka_unit_test(a_counter_that_falls_has_no_rate),
        cmocka_unit_test(charts_begin_full),
        cmocka_unit_test(steps_of_any_length_use_what_is_known),
        cmocka_unit_test(a_gap_is_filled_from_the_servers_moments),
        cmocka_unit_test(two_servers_are_not_joined),
        cmocka_unit_test(history_forgets_the_oldest),
        cmocka_unit_test(workers_are_those_that_answer),
        cmocka_unit_test(fairness_is_one_for_equal_rates_and_a_fraction_for_one_worker),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
