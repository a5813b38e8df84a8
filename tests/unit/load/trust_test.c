/* SPDX-License-Identifier: MIT
 *
 * Results derived from counts, and every doubt: it applies above its threshold, and not below.
 */
#include "load/trust.h"

#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>

#define NEAR(a, b) assert_true(fabs((a) - (b)) <= fabs(b) * 1e-9)

static const struct load_slos no_slos;

static struct load_verdict judge(const struct fixture *f)
{
    struct load_verdict verdict;
    load_trust_judge(&f->run, &f->outcomes[0], &no_slos, &verdict);
    return verdict;
}

/* Whether this doubt is the only one, has a reason, and makes the step invalid as it should. */
static bool doubts_only(const struct fixture *f, enum load_doubt which)
{
    struct load_verdict verdict = judge(f);
    bool only = true;
    for (unsigned i = 0; i < LOAD_DOUBT_COUNT; i++) {
        only = only && verdict.doubted[i] == (i == which);
        assert_true(verdict.doubted[i] == (strlen(verdict.reason[i]) > 0));
        assert_true(strlen(verdict.reason[i]) < LOAD_REASON_MAX - 1);
    }
    assert_true(!only || verdict.invalid == load_doubts[which].invalid);
    return only;
}

static bool doubts_none(const struct fixture *f)
{
    struct load_verdict verdict = judge(f);
    for (unsigned i = 0; i < LOAD_DOUBT_COUNT; i++)
        if (verdict.doubted[i])
            return false;
    return !verdict.invalid;
}

static struct fixture *fresh(void)
{
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    return &f;
}

static void a_sound_step_has_no_doubts(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    assert_true(doubts_none(f));
    fixture_done(f);
}

static void averages_follow_their_definitions(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->status[200] -= 1000;
    outcome->status[404] = 900;
    outcome->status[500] = 100;
    outcome->error[LOAD_connect_refused] = 9000;
    outcome->error[LOAD_wrong_body] = 1000;
    struct load_derived d = load_trust_derive(&f->run, outcome);
    NEAR(d.seconds, 10.0);
    NEAR(d.answers_per_s, 4000.0);
    NEAR(d.throughput_per_s, 3900.0);
    NEAR(d.response_ns, outcome->response.sum_ns / 40000);
    assert_int_equal(d.errors, 10000);
    assert_int_equal(d.refusals, 1000);
    assert_int_equal(d.failed, 11000);
    assert_int_equal(d.ended, 50000);
    NEAR(d.failed_share, 11000.0 / 50000);
    NEAR(d.think_ns, 8e6);
    NEAR(d.users * 10e9, outcome->user_ns);
    fixture_done(f);
}

/* 40 ms of think time and 42 us of CPU time: 953 users saturate one core. */
static void saturation_follows_from_demand(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->thought_ns = 40e6 * 40000;
    outcome->server_user_ns = UINT64_C(80) * 10000000;
    outcome->server_system_ns = UINT64_C(88) * 10000000;
    struct load_derived d = load_trust_derive(&f->run, outcome);
    assert_true(d.server);
    NEAR(d.demand_ns, 42e3);
    NEAR(d.server_cores, 0.168);
    NEAR(d.one_core_per_s, 1e9 / 42e3);
    NEAR(d.saturation_one_core, (42e3 + 40e6) / 42e3);
    NEAR(d.saturation, 4 * (42e3 + 40e6) / 42e3);
    outcome->server_user_ns = outcome->server_system_ns = 0;
    assert_false(load_trust_derive(&f->run, outcome).server);
    fixture_done(f);
}

static void set_lag(struct load_outcome *outcome, uint64_t ns)
{
    load_durations_done(&outcome->lag);
    assert_int_equal(load_durations_init(&outcome->lag), 0);
    for (unsigned i = 0; i < 1000; i++)
        load_durations_add(&outcome->lag, ns);
}

static void doubts_unexplained_time(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    double explained = outcome->user_ns;
    /* 2 % may be unexplained, plus the root of 40 users in 40,000 answers. */
    double limit = 0.02 + sqrt(explained / (1 - 0.02) / 10e9) / 40000;
    outcome->user_ns = explained / (1 - limit + 1e-5);
    assert_true(doubts_none(f));
    outcome->user_ns = explained / (1 - limit - 1e-5);
    assert_true(doubts_only(f, LOAD_DOUBT_little));
    outcome->user_ns = explained / (1 + limit + 1e-4);
    assert_true(doubts_only(f, LOAD_DOUBT_little));
    outcome->user_ns = explained * 1.5;
    outcome->connecting_ns = (uint64_t)(explained * 0.3);
    outcome->closing_ns = (uint64_t)(explained * 0.2);
    assert_true(doubts_none(f));
    outcome->closing_ns = 0;
    assert_true(doubts_only(f, LOAD_DOUBT_little));
    outcome->connecting_ns = 0;
    outcome->error[LOAD_response_timeout] = 1; /* its time is not part of user_ns */
    assert_true(judge(f).doubted[LOAD_DOUBT_little]);
    outcome->error[LOAD_response_timeout] = 0;
    f->plan.pipeline = 2;
    assert_true(doubts_none(f));
    assert_false(load_trust_derive(&f->run, outcome).little);
    fixture_done(f);
}

/* 300 us of a cycle of 10 ms: unexplained, unless the users were woken that late. */
static void counts_lateness_as_think_time(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->user_ns += 40000 * 300e3;
    assert_true(doubts_only(f, LOAD_DOUBT_little));
    set_lag(outcome, 320000 * 40); /* the mean of 40,000 answers */
    struct load_derived d = load_trust_derive(&f->run, outcome);
    NEAR(d.late_ns, 320e3);
    NEAR(d.think_ns, 8e6); /* as drawn */
    assert_true(fabs(d.hidden_ns) < 1);
    assert_false(judge(f).doubted[LOAD_DOUBT_little]);
    fixture_done(f);
}

/* The few microseconds that the generator needs per answer are no fault, even in a short cycle. */
static void accepts_a_few_unexplained_microseconds(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    struct load_outcome *outcome = &f.outcomes[0];
    for (unsigned i = 0; i < 50000; i++)
        fixture_answer(outcome, 50000);
    outcome->thought_ns = 0;
    outcome->user_ns = 50000 * 79.9e3; /* 50 us of response time, 20 us late */
    assert_true(doubts_none(&f));
    outcome->user_ns = 50000 * 80.1e3;
    assert_true(doubts_only(&f, LOAD_DOUBT_little));
    outcome->error[LOAD_connect_refused] = 50000; /* whose cost is divided among the answers, too */
    assert_true(doubts_only(&f, LOAD_DOUBT_failed));
    fixture_done(&f);
}

static void doubts_a_busy_thread(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->outcomes[0].busiest_thread_ns = UINT64_C(8000000000);
    assert_true(doubts_none(f));
    f->outcomes[0].busiest_thread_ns = UINT64_C(8000000001);
    assert_true(doubts_only(f, LOAD_DOUBT_generator_cpu));
    fixture_done(f);
}

static void compares_lateness_with_the_cycle(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    set_lag(outcome, 1000000); /* 10 % of the cycle, but that is 1 ms */
    assert_true(doubts_none(f));
    set_lag(outcome, 1010000);
    assert_true(doubts_only(f, LOAD_DOUBT_lag));
    f->plan.loop = LOAD_PACED;
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&outcome->intended, 40000000);
    f->plan.pace_ns = 100000000;
    set_lag(outcome, 5000000);
    assert_true(doubts_none(f));
    set_lag(outcome, 5010000);
    assert_true(doubts_only(f, LOAD_DOUBT_lag));
    f->plan.loop = LOAD_OPEN;
    set_lag(outcome, 2000000); /* of a p99 of 40 ms */
    assert_true(doubts_none(f));
    set_lag(outcome, 2010000);
    assert_true(doubts_only(f, LOAD_DOUBT_lag));
    fixture_done(f);
}

static void doubts_exhausted_descriptors_and_ports(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->outcomes[0].error[LOAD_no_descriptor] = 1;
    assert_true(judge(f).doubted[LOAD_DOUBT_no_descriptor]);
    assert_true(judge(f).invalid);
    f->outcomes[0].error[LOAD_no_descriptor] = 0;
    f->outcomes[0].error[LOAD_no_port] = 1;
    assert_true(judge(f).doubted[LOAD_DOUBT_no_port]);
    assert_true(judge(f).invalid);
    fixture_done(f);
}

/* One in a hundred may fail, of errors and refusals together, or what an objective says. */
static void doubts_a_result_when_requests_failed(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_slos slos = { 0 };
    struct load_verdict verdict;
    char why[LOAD_SLO_WHY_MAX];
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->status[200] -= 100;
    outcome->status[503] = 100;
    assert_true(doubts_only(f, LOAD_DOUBT_some_failed));
    outcome->error[LOAD_connect_refused] = 303; /* 403 of 40,303 */
    assert_true(doubts_only(f, LOAD_DOUBT_some_failed));
    outcome->error[LOAD_connect_refused] = 304;
    assert_true(doubts_only(f, LOAD_DOUBT_failed));
    assert_string_equal(judge(f).reason[LOAD_DOUBT_failed],
                        "404 of 40304 requests (1.00 %): 304 without a whole and right answer, 100 "
                        "with a status of 400 or above.");
    assert_true(load_slos_parse("p99<1s,errors<0.1%", &slos, why));
    load_trust_judge(&f->run, outcome, &slos, &verdict);
    assert_false(verdict.invalid);
    assert_true(verdict.doubted[LOAD_DOUBT_some_failed]);
    fixture_done(f);
}

/* Bytes that belong to no answer follow whole ones, so no request has failed. */
static void notes_bytes_that_belong_to_no_answer(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->outcomes[0].error[LOAD_unexpected] = 40000;
    assert_true(doubts_only(f, LOAD_DOUBT_unexpected));
    assert_true(load_trust_derive(&f->run, &f->outcomes[0]).failed_share == 0);
    fixture_done(f);
}

/* A request that is never answered has no response time. */
static void notes_requests_that_wait_longer_than_any_answer_took(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->unfinished = 2;
    outcome->longest_wait_ns = 100000000; /* 1 % of the time */
    assert_true(doubts_none(f));
    outcome->longest_wait_ns = 100000001;
    assert_true(doubts_only(f, LOAD_DOUBT_unfinished));
    assert_false(judge(f).invalid);
    load_durations_add(&outcome->response, 100000001);
    assert_false(judge(f).doubted[LOAD_DOUBT_unfinished]);
    fixture_done(f);
}

static void doubts_unsent_requests(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    outcome->requests = 39600;
    outcome->unsent = 400;
    f->plan.loop = LOAD_OPEN;
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&outcome->intended, 40000000);
    assert_true(doubts_none(f));
    outcome->unsent = 401;
    assert_true(doubts_only(f, LOAD_DOUBT_unsent));
    assert_non_null(strstr(judge(f).reason[LOAD_DOUBT_unsent], "have been the slowest."));
    outcome->error[LOAD_connect_refused] = 1;
    assert_non_null(strstr(judge(f).reason[LOAD_DOUBT_unsent], "After an error a user pauses."));
    fixture_done(f);
}

/* After a stall in the warm-up, more requests are sent than the rate gives. */
static void doubts_requests_from_before_the_measured_time(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    f->plan.loop = LOAD_OPEN;
    f->plan.threads = 2;
    outcome->step.rate = 3960; /* 39,600 requests in 10 s */
    outcome->requests = 39900;
    outcome->unsent = 98;
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&outcome->intended, 40000000);
    assert_true(doubts_none(f));
    outcome->unsent++;
    assert_true(doubts_only(f, LOAD_DOUBT_backlog));
    assert_string_equal(judge(f).reason[LOAD_DOUBT_backlog],
                        "39999 requests were due, 39600 of them at the rate in the measured time, "
                        "and the others before it.");
    f->plan.poisson = true; /* 796 more */
    assert_true(doubts_none(f));
    fixture_done(f);
}

/* With --requests none is left unsent, but they may take longer than the rate allows. */
static void doubts_requests_that_took_longer_than_the_rate_allows(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    struct load_outcome *outcome = &f->outcomes[0];
    f->plan.loop = LOAD_OPEN;
    f->plan.requests = outcome->requests = 40000;
    outcome->step.rate = 4000; /* 10 s */
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&outcome->intended, 40000000);
    uint64_t slow_ns = outcome->response.most_ns + outcome->lag.most_ns;
    outcome->measured_ns = UINT64_C(10100000000) + slow_ns;
    assert_true(doubts_none(f));
    outcome->measured_ns += 2;
    assert_true(doubts_only(f, LOAD_DOUBT_unsent));
    assert_string_equal(judge(f).reason[LOAD_DOUBT_unsent],
                        "40000 requests took 10.1 s. At the requested rate they take 10.1 s at "
                        "most, with the slowest answer.");
    f->plan.poisson = true; /* 800 more */
    assert_true(doubts_none(f));
    f->plan.poisson = false;
    outcome->longest_wait_ns = outcome->response.most_ns + 2; /* of a run that was interrupted */
    assert_true(doubts_none(f));
    outcome->longest_wait_ns = 0;
    outcome->error[LOAD_response_timeout] = 1; /* its time is not known */
    assert_false(judge(f).doubted[LOAD_DOUBT_unsent]);
    fixture_done(f);
}

static void doubts_runs_that_started_apart(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->run.start_skew_ns = 50000001;
    assert_true(doubts_none(f));
    f->run.merged = 2;
    assert_true(doubts_only(f, LOAD_DOUBT_skew));
    f->run.start_skew_ns = 50000000;
    assert_true(doubts_none(f));
    f->plan.shards = 2;
    assert_true(doubts_none(f));
    f->plan.shards = 3;
    assert_true(doubts_only(f, LOAD_DOUBT_shards));
    fixture_done(f);
}

/* The answers of a run that was interrupted are divided by the time of the longest run. */
static void doubts_a_merged_run_that_was_interrupted(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->run.interrupted = f->outcomes[0].interrupted = true;
    assert_true(doubts_none(f));
    f->run.merged = 2;
    f->plan.shards = 2;
    assert_true(doubts_only(f, LOAD_DOUBT_cut));
    f->outcomes[0].interrupted = false; /* in the warm-up after this step */
    assert_true(doubts_none(f));
    fixture_done(f);
}

static void notes_refused_tickets(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->outcomes[0].handshakes_full = 500; /* also of users that had no ticket yet */
    f->outcomes[0].handshakes_resumed = 99;
    assert_true(doubts_none(f));
    f->outcomes[0].tickets_refused = 1; /* 1 % of 100 */
    assert_true(doubts_none(f));
    f->outcomes[0].tickets_refused = 2;
    assert_true(doubts_only(f, LOAD_DOUBT_tickets_refused));
    assert_false(judge(f).invalid);
    fixture_done(f);
}

static void notes_a_gap_in_a_closed_loop(void **state)
{
    (void)state;
    struct fixture *f = fresh();
    f->outcomes[0].longest_gap_ns = 100000000; /* 1 % of the time */
    assert_true(doubts_none(f));
    f->outcomes[0].longest_gap_ns = 100000001;
    assert_true(doubts_only(f, LOAD_DOUBT_gap));
    assert_false(judge(f).invalid);
    f->plan.loop = LOAD_PACED;
    f->plan.pace_ns = 10000000;
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&f->outcomes[0].intended, 2000000);
    assert_true(doubts_none(f));
    fixture_done(f);
}

/* A server that takes as long for every answer has no gap. */
static void a_slow_server_makes_no_gap(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    for (unsigned i = 0; i < 30000; i++)
        fixture_answer(&f.outcomes[0], 200000000);
    f.outcomes[0].longest_gap_ns = 1900000000;
    assert_true(doubts_none(&f));
    fixture_done(&f);
}

static void a_step_without_answers_is_invalid(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    assert_true(doubts_only(&f, LOAD_DOUBT_no_request));
    f.outcomes[0].measured_ns = 0;
    assert_true(doubts_only(&f, LOAD_DOUBT_no_request));
    f.outcomes[0].requests = 1;
    assert_true(doubts_only(&f, LOAD_DOUBT_no_answer_yet));
    f.outcomes[0].requests = 0; /* in the warm-up */
    f.outcomes[0].unfinished = 1;
    assert_true(doubts_only(&f, LOAD_DOUBT_no_answer_yet));
    f.outcomes[0].error[LOAD_connect_refused] = 1;
    assert_true(doubts_only(&f, LOAD_DOUBT_no_answers));
    f.plan.loop = LOAD_OPEN;
    set_lag(&f.outcomes[0], 50000000); /* there is no response time to compare with */
    assert_true(doubts_only(&f, LOAD_DOUBT_no_answers));
    fixture_done(&f);
}

static void a_percentile_needs_enough_answers(void **state)
{
    (void)state;
    assert_true(load_trust_carries(6, 0.5));
    assert_false(load_trust_carries(5, 0.5));
    assert_true(load_trust_carries(300, 0.99));
    assert_false(load_trust_carries(299, 0.99));
    assert_true(load_trust_carries(30000, 0.9999));
    assert_false(load_trust_carries(29999, 0.9999));
    assert_false(load_trust_carries(0, 0.5));
}

static void answers_that_are_all_refusals_are_no_success(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    struct load_outcome *outcome = &f.outcomes[0];
    outcome->status[200] = 1;
    outcome->status[404] = outcome->answers - 1;
    assert_true(doubts_only(&f, LOAD_DOUBT_failed));
    outcome->status[200] = 0;
    outcome->status[503] = 1;
    assert_true(doubts_only(&f, LOAD_DOUBT_no_success));
    fixture_done(&f);
}

static void too_few_answers_cannot_meet_an_objective(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_slos slos = { 0 };
    struct load_verdict verdict;
    char why[LOAD_SLO_WHY_MAX];
    fixture_init(&f, 1);
    for (unsigned i = 0; i < 2999; i++)
        fixture_answer(&f.outcomes[0], 1000000);
    assert_true(doubts_only(&f, LOAD_DOUBT_few_answers));
    assert_true(load_slos_parse("p99<1s,mean<1s", &slos, why));
    load_trust_judge(&f.run, &f.outcomes[0], &slos, &verdict);
    assert_false(verdict.invalid);
    assert_true(load_slos_parse("p99.9<1s", &slos, why));
    load_trust_judge(&f.run, &f.outcomes[0], &slos, &verdict);
    assert_true(verdict.invalid);
    assert_string_equal(verdict.reason[LOAD_DOUBT_few_for_slo],
                        "2999 answers are too few for p99.9<1s, which needs 3000.");
    fixture_answer(&f.outcomes[0], 1000000);
    load_trust_judge(&f.run, &f.outcomes[0], &slos, &verdict);
    assert_false(verdict.invalid);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_step_has_no_doubts),
        cmocka_unit_test(averages_follow_their_definitions),
        cmocka_unit_test(saturation_follows_from_demand),
        cmocka_unit_test(doubts_unexplained_time),
        cmocka_unit_test(counts_lateness_as_think_time),
        cmocka_unit_test(accepts_a_few_unexplained_microseconds),
        cmocka_unit_test(doubts_a_busy_thread),
        cmocka_unit_test(compares_lateness_with_the_cycle),
        cmocka_unit_test(doubts_exhausted_descriptors_and_ports),
        cmocka_unit_test(doubts_a_result_when_requests_failed),
        cmocka_unit_test(notes_bytes_that_belong_to_no_answer),
        cmocka_unit_test(notes_requests_that_wait_longer_than_any_answer_took),
        cmocka_unit_test(doubts_unsent_requests),
        cmocka_unit_test(doubts_requests_from_before_the_measured_time),
        cmocka_unit_test(doubts_requests_that_took_longer_than_the_rate_allows),
        cmocka_unit_test(doubts_runs_that_started_apart),
        cmocka_unit_test(doubts_a_merged_run_that_was_interrupted),
        cmocka_unit_test(notes_refused_tickets),
        cmocka_unit_test(notes_a_gap_in_a_closed_loop),
        cmocka_unit_test(a_slow_server_makes_no_gap),
        cmocka_unit_test(a_step_without_answers_is_invalid),
        cmocka_unit_test(a_percentile_needs_enough_answers),
        cmocka_unit_test(answers_that_are_all_refusals_are_no_success),
        cmocka_unit_test(too_few_answers_cannot_meet_an_objective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
