/* SPDX-License-Identifier: MIT
 *
 * Random numbers have their distribution, and repeat with the same seed. Seeds are fixed, so a test
 * passes always or never.
 */
#include "load/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DRAWS = 200 * 1000 };

static void streams_repeat_and_differ(void **state)
{
    (void)state;
    struct load_random a = load_schedule_random_of(7, 1), b = load_schedule_random_of(7, 1);
    struct load_random c = load_schedule_random_of(7, 2), d = load_schedule_random_of(8, 1);
    unsigned same = 0;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t x = load_schedule_random_next(&a);
        assert_true(x == load_schedule_random_next(&b));
        same += x == load_schedule_random_next(&c) || x == load_schedule_random_next(&d);
    }
    assert_int_equal(same, 0);
}

static void random_units_are_evenly_distributed(void **state)
{
    (void)state;
    enum { CELLS = 100 };
    unsigned seen[CELLS] = { 0 };
    struct load_random random = load_schedule_random_of(1, 1);
    for (unsigned i = 0; i < DRAWS; i++) {
        double unit = load_schedule_random_unit(&random);
        assert_true(unit > 0 && unit <= 1);
        seen[(unsigned)ceil(unit * CELLS) - 1]++;
    }
    double square = 0, expected = (double)DRAWS / CELLS;
    for (unsigned i = 0; i < CELLS; i++)
        square += (seen[i] - expected) * (seen[i] - expected) / expected;
    assert_true(square < 149); /* 99 degrees of freedom, 99.9 % */
    assert_true(square > 60);  /* and not too even */
}

struct moments {
    double mean, variance;
};

static struct moments moments_of(const struct load_think *think, uint64_t stream)
{
    struct load_random random = load_schedule_random_of(3, stream);
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        double ns = (double)load_schedule_think_draw(think, &random);
        sum += ns;
        squares += ns * ns;
    }
    double mean = sum / DRAWS;
    return (struct moments){ mean, squares / DRAWS - mean * mean };
}

static void assert_near(double value, double expected, double part)
{
    if (fabs(value - expected) > part * expected)
        fail_msg("%f, not %f", value, expected);
}

static void think_times_have_their_distribution(void **state)
{
    (void)state;
    const struct load_think constant = { LOAD_THINK_CONSTANT, 40000000, 40000000 };
    const struct load_think exponential = { LOAD_THINK_EXPONENTIAL, 40000000, 40000000 };
    const struct load_think uniform = { LOAD_THINK_UNIFORM, 10000000, 70000000 };
    assert_true(moments_of(&constant, 1).mean == 40e6);
    assert_true(moments_of(&constant, 1).variance == 0);
    struct moments moments = moments_of(&exponential, 2);
    assert_near(moments.mean, 40e6, 0.01);
    assert_near(moments.variance, 40e6 * 40e6, 0.03);
    moments = moments_of(&uniform, 3);
    assert_near(moments.mean, 40e6, 0.01);
    assert_near(moments.variance, 60e6 * 60e6 / 12, 0.02);
    assert_true(load_schedule_think_mean_ns(&uniform) == 40000000);
    assert_true(load_schedule_think_mean_ns(&exponential) == 40000000);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void spreads_the_first_requests_of_any_number_of_users(void **state)
{
    (void)state;
    static const unsigned counts[] = { 2, 10, 37, 1000 };
    for (unsigned c = 0; c < 4; c++) {
        uint64_t at[1001], count = counts[c];
        for (uint64_t i = 0; i < count; i++) {
            at[i] = load_schedule_stagger_ns(i, 1000000);
            assert_true(at[i] < 1000000);
        }
        qsort(at, count, sizeof(at[0]), by_size);
        at[count] = 1000000;
        for (uint64_t i = 0; i < count; i++) /* no gap is thrice what it would be at its best */
            assert_true(at[i + 1] - at[i] < 3 * 1000000 / count);
    }
    assert_true(load_schedule_stagger_ns(5, 0) == 0);
}

static void check_choice(const double *parts, size_t count, double zipf)
{
    struct load_target *targets = calloc(count, sizeof(*targets));
    unsigned *seen = calloc(count, sizeof(*seen));
    struct load_choice choice;
    struct load_random random = load_schedule_random_of(5, count);
    double sum = 0, square = 0;
    for (size_t i = 0; i < count; i++) {
        targets[i].weight = zipf > 0 ? 1 : parts[i];
        sum += zipf > 0 ? pow((double)(i + 1), -zipf) : parts[i];
    }
    assert_int_equal(load_schedule_choice_init(&choice, targets, count, zipf), 0);
    for (unsigned i = 0; i < DRAWS; i++) {
        size_t index = load_schedule_choice_draw(&choice, &random);
        assert_in_range(index, 0, count - 1);
        seen[index]++;
    }
    for (size_t i = 0; i < count; i++) {
        double part = zipf > 0 ? pow((double)(i + 1), -zipf) : parts[i];
        double expected = DRAWS * part / sum;
        square += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    double freedom = (double)count - 1; /* chi-square: mean and variance by its degrees */
    if (square > freedom + 4 * sqrt(2 * freedom) + 4)
        fail_msg("chi-square of %f for %zu targets", square, count);
    load_schedule_choice_done(&choice);
    free(targets);
    free(seen);
}

static void chooses_by_weight_and_by_zipf(void **state)
{
    (void)state;
    static const double weights[] = { 1, 5, 0.25, 10, 3 }, even[] = { 1, 1, 1 };
    check_choice(weights, 5, 0);
    check_choice(weights, 1, 0);
    check_choice(even, 3, 0);
    check_choice(NULL, 100, 1);
    check_choice(NULL, 1000, 0.8);
}

static void passed_arrivals_are_counted(void **state)
{
    (void)state;
    struct load_arrivals arrivals;
    load_schedule_arrivals_init(&arrivals, 1000, 0, 1, false, load_schedule_random_of(1, 1), 5000);
    uint64_t first_ns = load_schedule_arrivals_due_ns(&arrivals);
    assert_int_equal(load_schedule_arrivals_pass(&arrivals, first_ns), 0);
    assert_int_equal(load_schedule_arrivals_pass(&arrivals, first_ns + 9500000), 10);
    assert_int_equal(load_schedule_arrivals_due_ns(&arrivals), first_ns + 10000000);
    assert_int_equal(load_schedule_arrivals_pass(&arrivals, first_ns), 0);
}

static void arrivals_keep_their_rate(void **state)
{
    (void)state;
    struct load_arrivals arrivals;
    /* Evenly: the parts of three threads interleave, and nothing drifts. */
    for (unsigned part = 0; part < 3; part++) {
        load_schedule_arrivals_init(&arrivals, 300, part, 3, false, load_schedule_random_of(1, 1),
                                    1000);
        for (uint64_t i = 0; i < 100000; i++) {
            uint64_t expected = 1000 + (i * 3 + part) * 1000000000 / 300;
            uint64_t due = load_schedule_arrivals_due_ns(&arrivals);
            assert_true(due + 2 >= expected && due <= expected + 2);
            load_schedule_arrivals_take(&arrivals);
        }
    }
    load_schedule_arrivals_init(&arrivals, 1000, 0, 1, true, load_schedule_random_of(1, 1), 0);
    double before = 0, sum = 0, squares = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        double due = (double)load_schedule_arrivals_due_ns(&arrivals), gap = due - before;
        sum += gap;
        squares += gap * gap;
        before = due;
        load_schedule_arrivals_take(&arrivals);
    }
    double mean = sum / DRAWS;
    assert_near(mean, 1e6, 0.01);
    assert_near(squares / DRAWS - mean * mean, 1e12, 0.03);
}

/* Each machine has its part of the rate. Together they are as even as one machine. */
static void the_arrivals_of_shards_interleave(void **state)
{
    (void)state;
    enum { THREADS = 2, SHARDS = 3, EACH = 1000 };
    struct load_step step = { .rate = 200 }; /* of one shard */
    bool due_at[THREADS * SHARDS * EACH] = { false };
    for (unsigned part = 0; part < THREADS * SHARDS; part++) {
        struct load_plan plan = {
            .steps = &step, .threads = THREADS, .shard = part % SHARDS, .shards = SHARDS
        };
        struct load_arrivals arrivals;
        load_schedule_arrivals_begin(&arrivals, &plan, 0, part / SHARDS, 5000);
        for (unsigned i = 0; i < EACH; i++) {
            double place = (double)(load_schedule_arrivals_due_ns(&arrivals) - 5000) * 600 / 1e9;
            size_t at = (size_t)(place + 0.5);
            assert_true(at < THREADS * SHARDS * EACH && !due_at[at]);
            assert_true(place + 0.001 > (double)at && place < (double)at + 0.001);
            due_at[at] = true;
            load_schedule_arrivals_take(&arrivals);
        }
    }
}

static void shares_add_up(void **state)
{
    (void)state;
    for (unsigned of = 1; of < 9; of++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < of; i++) {
            sum += load_schedule_share(23, i, of);
            assert_in_range(load_schedule_share(23, i, of), 23 / of, 23 / of + 1);
        }
        assert_int_equal(sum, 23);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_repeat_and_differ),
        cmocka_unit_test(random_units_are_evenly_distributed),
        cmocka_unit_test(think_times_have_their_distribution),
        cmocka_unit_test(spreads_the_first_requests_of_any_number_of_users),
        cmocka_unit_test(chooses_by_weight_and_by_zipf),
        cmocka_unit_test(passed_arrivals_are_counted),
        cmocka_unit_test(arrivals_keep_their_rate),
        cmocka_unit_test(the_arrivals_of_shards_interleave),
        cmocka_unit_test(shares_add_up),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
