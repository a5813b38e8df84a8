/* SPDX-License-Identifier: MIT
 *
 * Objectives as they are written, well and badly, and when they are met.
 */
#include "load/slo.h"

#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>

static void what_is_written_is_what_is_read(void **state)
{
    (void)state;
    static const struct row {
        const char *text;
        enum load_slo_of of;
        double part;
        enum load_slo_order order;
        double limit;
    } rows[] = {
        { "p99<10ms", LOAD_SLO_QUANTILE, 0.99, LOAD_SLO_BELOW, 10e6 },
        { "p99.9<=1.5s", LOAD_SLO_QUANTILE, 0.999, LOAD_SLO_AT_MOST, 1.5e9 },
        { "p50>1us", LOAD_SLO_QUANTILE, 0.5, LOAD_SLO_ABOVE, 1e3 },
        { "mean<=2ms", LOAD_SLO_MEAN, 0, LOAD_SLO_AT_MOST, 2e6 },
        { " max<1m ", LOAD_SLO_MAX, 0, LOAD_SLO_BELOW, 60e9 },
        { "max>=.5us", LOAD_SLO_MAX, 0, LOAD_SLO_AT_LEAST, 500 },
        { "errors<0.1%", LOAD_SLO_ERRORS, 0, LOAD_SLO_BELOW, 0.001 },
        { "errors<=0", LOAD_SLO_ERRORS, 0, LOAD_SLO_AT_MOST, 0 },
        { "throughput>1000", LOAD_SLO_THROUGHPUT, 0, LOAD_SLO_ABOVE, 1000 },
        { "throughput>=.5/s", LOAD_SLO_THROUGHPUT, 0, LOAD_SLO_AT_LEAST, 0.5 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_slos slos = { 0 };
        char why[LOAD_SLO_WHY_MAX] = "";
        assert_true(load_slos_parse(rows[i].text, &slos, why));
        assert_string_equal(why, "");
        assert_int_equal(slos.count, 1);
        assert_int_equal(slos.slo[0].of, rows[i].of);
        assert_int_equal(slos.slo[0].order, rows[i].order);
        assert_true(fabs(slos.slo[0].part - rows[i].part) < 1e-12);
        assert_true(fabs(slos.slo[0].limit - rows[i].limit) <= rows[i].limit * 1e-12);
    }
}

static void a_list_is_read_whole_and_added_to(void **state)
{
    (void)state;
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    assert_true(load_slos_parse("p99<10ms, errors<0.1%,throughput>1000", &slos, why));
    assert_true(load_slos_parse("mean<1ms", &slos, why));
    assert_int_equal(slos.count, 4);
    assert_string_equal(slos.slo[1].text, "errors<0.1%");
    assert_string_equal(slos.slo[3].text, "mean<1ms");
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    static const struct row {
        const char *text, *why;
    } rows[] = {
        { "", "`': has no < <= > or >=, as in p99<10ms" },
        { "p99<10ms,", "`': has no < <= > or >=, as in p99<10ms" },
        { "p99", "`p99': has no < <= > or >=, as in p99<10ms" },
        { "p99=10ms", "`p99=10ms': has no < <= > or >=, as in p99<10ms" },
        { "p99<10", "`p99<10': is a time with its unit: us, ms, s, m or h" },
        { "p99<10 ms", "`p99<10 ms': is a time with its unit: us, ms, s, m or h" },
        { "p99<<10ms", "`p99<<10ms': is a time with its unit: us, ms, s, m or h" },
        { "p99<ms", "`p99<ms': is a time with its unit: us, ms, s, m or h" },
        { "p99<.ms", "`p99<.ms': is a time with its unit: us, ms, s, m or h" },
        { "mean<-1ms", "`mean<-1ms': is a time with its unit: us, ms, s, m or h" },
        { "p100<1s", "`p100<1s': a percentile is above 0 and below 100" },
        { "p0<1s", "`p0<1s': a percentile is above 0 and below 100" },
        { "p<1s", "`p<1s': begins with p50, p99.9 or the like, mean, max, errors or throughput" },
        { "<1s", "`<1s': begins with p50, p99.9 or the like, mean, max, errors or throughput" },
        { "p9x<1s",
          "`p9x<1s': begins with p50, p99.9 or the like, mean, max, errors or throughput" },
        { "median<1s",
          "`median<1s': begins with p50, p99.9 or the like, mean, max, errors or throughput" },
        { "errors<5", "`errors<5': is more than all: 0.1% is 0.001" },
        { "errors<1ms", "`errors<1ms': is a share, as in errors<0.1%" },
        { "throughput>5%",
          "`throughput>5%': is a number of requests a second, as in throughput>1000" },
        { "p99<00000000000000000000000000010ms", "`p99<000000000000000000000000000': is too long" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_slos slos = { 0 };
        char why[LOAD_SLO_WHY_MAX] = "", wanted[LOAD_SLO_WHY_MAX];
        (void)snprintf(wanted, sizeof(wanted), "%s", rows[i].why);
        if (strchr(wanted, '\''))
            *strchr(wanted, '\'') = '`';
        assert_false(load_slos_parse(rows[i].text, &slos, why));
        if (strstr(rows[i].why, "too long"))
            assert_non_null(strstr(why, "`: is too long"));
        else
            assert_string_equal(why, wanted);
    }
}

static void there_are_only_so_many(void **state)
{
    (void)state;
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    for (unsigned i = 0; i < LOAD_SLOS_MAX; i++)
        assert_true(load_slos_parse("max<1s", &slos, why));
    assert_false(load_slos_parse("max<1s", &slos, why));
    assert_string_equal(why, "`max<1s`: more than 16 objectives");
}

static bool meets(const struct fixture *f, const char *text)
{
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    assert_true(load_slos_parse(text, &slos, why));
    return load_slo_met(&slos.slo[0], load_slo_value(&slos.slo[0], &f->run, &f->outcomes[0]));
}

/* 9 answers of 1 us and one of 2 us in 10 s, of which one is a 404; and 2 errors. */
static void values_are_compared_with_limits(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    for (unsigned i = 0; i < 9; i++)
        fixture_answer(&f.outcomes[0], 1000);
    fixture_answer(&f.outcomes[0], 2000);
    f.outcomes[0].status[200]--;
    f.outcomes[0].status[404]++;
    f.outcomes[0].error[LOAD_reset_amid] = 2;
    assert_true(meets(&f, "p90<=1us"));
    assert_false(meets(&f, "p90<1us"));
    assert_true(meets(&f, "p90>=1us"));
    assert_false(meets(&f, "p90>1us"));
    assert_false(meets(&f, "p91<=1.999us"));
    assert_true(meets(&f, "max<=2us"));
    assert_true(meets(&f, "mean<=1.1us"));
    assert_false(meets(&f, "mean<1.0999us"));
    assert_true(meets(&f, "errors<=25%"));
    assert_false(meets(&f, "errors<0.25"));
    assert_true(meets(&f, "throughput>=0.9"));
    assert_false(meets(&f, "throughput>0.9/s"));
    fixture_done(&f);
}

static void a_paced_loop_answers_for_its_lateness(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    fixture_answer(&f.outcomes[0], 1000);
    load_durations_add(&f.outcomes[0].intended, 1000000);
    assert_true(meets(&f, "max<1ms"));
    f.plan.loop = LOAD_PACED;
    assert_false(meets(&f, "max<1ms"));
    f.plan.loop = LOAD_OPEN;
    assert_false(meets(&f, "p50<1ms"));
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_what_is_read),
        cmocka_unit_test(a_list_is_read_whole_and_added_to),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(there_are_only_so_many),
        cmocka_unit_test(values_are_compared_with_limits),
        cmocka_unit_test(a_paced_loop_answers_for_its_lateness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
