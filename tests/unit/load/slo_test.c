/* SPDX-License-Identifier: MIT
 *
 * Reading objectives, mistakes in them, and when they are met.
 */
#include "load/slo.h"

#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>

static void reads_each_kind_of_objective(void **state)
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

static void reads_a_list_and_appends_to_it(void **state)
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

static void refuses_a_mistake_with_a_cure(void **state)
{
    (void)state;
    static const struct row {
        const char *text, *why;
    } rows[] = {
        { "", "`' has no sign; write < <= > or >=, as in p99<10ms" },
        { "p99<10ms,", "`' has no sign; write < <= > or >=, as in p99<10ms" },
        { "p99", "`p99' has no sign; write < <= > or >=, as in p99<10ms" },
        { "p99=10ms", "`p99=10ms' has no sign; write < <= > or >=, as in p99<10ms" },
        { "p99<10", "`p99<10' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "p99<10 ms", "`p99<10 ms' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "p99<<10ms", "`p99<<10ms' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "p99<ms", "`p99<ms' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "p99<.ms", "`p99<.ms' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "mean<-1ms", "`mean<-1ms' needs a time with a unit (us, ms, s, m or h), as in p99<10ms" },
        { "p100<1s", "`p100<1s' is no percentile between p0 and p100" },
        { "p0<1s", "`p0<1s' is no percentile between p0 and p100" },
        { "p<1s", "`p<1s' has no known name; write p50, p99.9, mean, max, errors or throughput" },
        { "<1s", "`<1s' has no known name; write p50, p99.9, mean, max, errors or throughput" },
        { "p9x<1s",
          "`p9x<1s' has no known name; write p50, p99.9, mean, max, errors or throughput" },
        { "median<1s",
          "`median<1s' has no known name; write p50, p99.9, mean, max, errors or throughput" },
        { "errors<5", "`errors<5' has a share above 1; write 0.1% or 0.001" },
        { "errors<1ms", "`errors<1ms' needs a share, as in errors<0.1%" },
        { "throughput>5%",
          "`throughput>5%' needs a number of requests per second, as in throughput>1000" },
        { "p99<00000000000000000000000000010ms", "`p99<000000000000000000000000000' is too long" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_slos slos = { 0 };
        char why[LOAD_SLO_WHY_MAX] = "", wanted[LOAD_SLO_WHY_MAX];
        (void)snprintf(wanted, sizeof(wanted), "%s", rows[i].why);
        if (strchr(wanted, '\''))
            *strchr(wanted, '\'') = '`';
        assert_false(load_slos_parse(rows[i].text, &slos, why));
        if (strstr(rows[i].why, "too long"))
            assert_non_null(strstr(why, "` is too long"));
        else
            assert_string_equal(why, wanted);
    }
}

static void refuses_too_many_objectives(void **state)
{
    (void)state;
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    for (unsigned i = 0; i < LOAD_SLOS_MAX; i++)
        assert_true(load_slos_parse("max<1s", &slos, why));
    assert_false(load_slos_parse("max<1s", &slos, why));
    assert_string_equal(why, "`max<1s` is one objective too many; at most 16");
}

static bool meets(const struct fixture *f, const char *text)
{
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    assert_true(load_slos_parse(text, &slos, why));
    return load_slo_met(&slos.slo[0], load_slo_value(&slos.slo[0], &f->run, &f->outcomes[0]));
}

/* 9 answers of 1 us and one of 2 us in 10 s, of which one is a 404; and 2 errors. */
static void compares_values_with_limits(void **state)
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

/* A server that refuses every connection must not pass for a quick one. */
static void nothing_that_is_unknown_meets_an_objective(void **state)
{
    (void)state;
    static const char *const texts[] = { "p99<10ms", "p1>=1us", "mean<=1s", "max<1s" };
    struct fixture f;
    fixture_init(&f, 1);
    assert_false(meets(&f, "errors<1%"));
    f.outcomes[0].error[LOAD_connect_refused] = 20;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(meets(&f, texts[i]));
    assert_false(meets(&f, "errors<1%"));
    assert_true(meets(&f, "errors<=100%"));
    assert_true(meets(&f, "throughput<=0"));
    fixture_done(&f);
}

static void a_paced_loop_counts_from_the_due_time(void **state)
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
        cmocka_unit_test(reads_each_kind_of_objective),
        cmocka_unit_test(reads_a_list_and_appends_to_it),
        cmocka_unit_test(refuses_a_mistake_with_a_cure),
        cmocka_unit_test(refuses_too_many_objectives),
        cmocka_unit_test(compares_values_with_limits),
        cmocka_unit_test(nothing_that_is_unknown_meets_an_objective),
        cmocka_unit_test(a_paced_loop_counts_from_the_due_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
