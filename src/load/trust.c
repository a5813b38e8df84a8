/* SPDX-License-Identifier: MIT */
#include "load/trust.h"

#include "load/format.h"

#include <math.h>
#include <stdarg.h>

/* Thresholds: of the deviation from Little's law, of the CPU share above which a thread serves
 * its users late (k6 advises the same), and of the lateness that counts. */
static const double hidden_share_max = 0.02;
static const double hidden_ns_least = 10e3; /* less is the cost of the send call itself */
static const double busiest_share_max = 0.80;
static const double lag_share_max = 0.05;
static const double lag_ns_least = 1e6;
static const double unsent_share_max = 0.01;
static const double backlog_share_max = 0.01;
static const double gap_share_max = 0.01;
static const double gap_medians_max = 10;
static const double refused_share_max = 0.01;
static const double failed_share_max = 0.01;
static const double skew_ns_max = 50e6;

const struct load_doubt_about load_doubts[LOAD_DOUBT_COUNT] = {
#define LOAD_DOUBT(name, invalid, cause, cure) { #name, invalid, cause, cure },
    LOAD_DOUBTS(LOAD_DOUBT)
#undef LOAD_DOUBT
};

/* ---- what follows from the counts ---- */

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void derive_errors(struct load_derived *d, const struct load_outcome *outcome)
{
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        d->errors += outcome->error[i];
    for (unsigned i = 400; i < LOAD_STATUS_MAX; i++)
        d->refusals += outcome->status[i];
    /* Bytes that belong to no answer follow a whole one, which is counted. */
    uint64_t unanswered = d->errors - outcome->error[LOAD_unexpected];
    d->ended = unanswered + outcome->answers;
    d->failed = unanswered + d->refusals;
    d->failed_share = ratio((double)d->failed, (double)d->ended);
}

static void derive_cycle(struct load_derived *d, const struct load_run *run,
                         const struct load_outcome *outcome)
{
    double answers = (double)outcome->answers;
    d->response_ns = load_durations_mean_ns(&outcome->response);
    d->think_ns = ratio(outcome->thought_ns, answers);
    d->late_ns = run->plan->loop == LOAD_CLOSED ? ratio(outcome->lag.sum_ns, answers) : 0;
    d->connect_ns = ratio((double)outcome->connecting_ns, answers);
    d->close_ns = ratio((double)outcome->closing_ns, answers);
    d->users = ratio(outcome->user_ns, (double)outcome->measured_ns);
    d->cycle_ns = ratio(outcome->user_ns, answers);
    d->hidden_ns = d->cycle_ns - d->response_ns - d->think_ns - d->late_ns - d->connect_ns -
                   d->close_ns;
    d->hidden_share = ratio(d->hidden_ns, d->cycle_ns);
    d->little = run->plan->loop == LOAD_CLOSED && run->plan->pipeline <= 1 && answers > 0;
}

static void derive_cpu(struct load_derived *d, const struct load_run *run,
                       const struct load_outcome *outcome)
{
    double answers = (double)outcome->answers, measured_ns = (double)outcome->measured_ns;
    double generator_ns = (double)(outcome->generator_user_ns + outcome->generator_system_ns);
    double server_ns = (double)(outcome->server_user_ns + outcome->server_system_ns);
    d->generator_cores = ratio(generator_ns, measured_ns);
    d->generator_cost_ns = ratio(generator_ns, answers);
    d->busiest_share = ratio((double)outcome->busiest_thread_ns, measured_ns);
    d->server = server_ns > 0 && answers > 0;
    if (!d->server)
        return;
    d->server_cores = ratio(server_ns, measured_ns);
    d->demand_ns = server_ns / answers;
    d->one_core_per_s = 1e9 / d->demand_ns;
    d->saturation_one_core = (d->demand_ns + d->think_ns) / d->demand_ns;
    d->saturation = run->server_cpus * d->saturation_one_core;
}

struct load_derived load_trust_derive(const struct load_run *run,
                                      const struct load_outcome *outcome)
{
    struct load_derived d = { .seconds = (double)outcome->measured_ns / 1e9 };
    derive_errors(&d, outcome);
    d.answers_per_s = ratio((double)outcome->answers, d.seconds);
    d.throughput_per_s = ratio((double)outcome->answers - (double)d.refusals, d.seconds);
    derive_cycle(&d, run, outcome);
    derive_cpu(&d, run, outcome);
    return d;
}

const struct load_durations *load_trust_response(const struct load_run *run,
                                                 const struct load_outcome *outcome)
{
    return run->plan->loop == LOAD_CLOSED ? &outcome->response : &outcome->intended;
}

bool load_trust_carries(uint64_t count, double part)
{
    return (double)count * (1 - part) >= 3 - 1e-6; /* 1 - 0.95 is about e^-3 */
}

/* ---- doubts ---- */

__attribute__((format(printf, 3, 4))) static void doubt(struct load_verdict *verdict,
                                                        enum load_doubt which, const char *format,
                                                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(verdict->reason[which], LOAD_REASON_MAX, format, arguments);
    va_end(arguments);
    verdict->doubted[which] = true;
    verdict->invalid = verdict->invalid || load_doubts[which].invalid;
}

/* Little's law may be off by 2 %, plus the uncertainty that comes from users in the middle of a
 * cycle at the start and end of the measured time. That is about the root of their number. */
static bool little_fails(const struct load_derived *d, const struct load_outcome *outcome,
                         double *ret_limit)
{
    *ret_limit = hidden_share_max + ratio(sqrt(d->users), (double)outcome->answers);
    /* Failed requests have send calls, too, and their cost is divided among the answers. */
    double least_ns = hidden_ns_least * ratio((double)d->ended, (double)outcome->answers);
    return d->little && fabs(d->hidden_share) > *ret_limit && fabs(d->hidden_ns) > least_ns;
}

static void judge_little(struct load_verdict *verdict, const struct load_derived *d,
                         const struct load_outcome *outcome)
{
    double limit;
    if (!little_fails(d, outcome, &limit))
        return;
    doubt(verdict, LOAD_DOUBT_little,
          "Little's law: the cycle N/X is %s, and its parts leave %s of it unexplained (%.1f %%; "
          "the limit is %.1f %%).",
          load_format_time(d->cycle_ns).text, load_format_time(d->hidden_ns).text,
          d->hidden_share * 100, limit * 100);
}

/* The time that lateness is compared with: the time between a user's requests, or in an open loop
 * the reported response time. */
static double lag_basis_ns(const struct load_run *run, const struct load_outcome *outcome,
                           const struct load_derived *d)
{
    switch (run->plan->loop) {
    case LOAD_CLOSED:
        return d->cycle_ns;
    case LOAD_PACED:
        return (double)run->plan->pace_ns;
    case LOAD_OPEN:
        return (double)load_durations_quantile_ns(&outcome->intended, 0.99);
    }
    return 0;
}

static void judge_generator(struct load_verdict *verdict, const struct load_run *run,
                            const struct load_outcome *outcome, const struct load_derived *d)
{
    if (d->busiest_share > busiest_share_max)
        doubt(verdict, LOAD_DOUBT_generator_cpu,
              "Its busiest thread used %.0f %% of a CPU; above %.0f %% it sends late.",
              d->busiest_share * 100, busiest_share_max * 100);
    double lag_ns = (double)load_durations_quantile_ns(&outcome->lag, 0.99);
    double basis_ns = lag_basis_ns(run, outcome, d);
    if (basis_ns > 0 && lag_ns > lag_ns_least && lag_ns > lag_share_max * basis_ns)
        doubt(verdict, LOAD_DOUBT_lag,
              "Requests started up to %s late (p99), more than %.0f %% of the %s %s.",
              load_format_time(lag_ns).text, lag_share_max * 100, load_format_time(basis_ns).text,
              run->plan->loop == LOAD_OPEN ? "at p99" : "between a user's requests");
    if (outcome->error[LOAD_no_descriptor] > 0)
        doubt(verdict, LOAD_DOUBT_no_descriptor, "%llu requests found no descriptor left.",
              (unsigned long long)outcome->error[LOAD_no_descriptor]);
    if (outcome->error[LOAD_no_port] > 0)
        doubt(verdict, LOAD_DOUBT_no_port, "%llu requests found no local port left.",
              (unsigned long long)outcome->error[LOAD_no_port]);
}

/* Requests that were overdue at the start of the measured time are sent beside those of the rate.
 * The places of the arrivals of each thread may add one. */
static void judge_backlog(struct load_verdict *verdict, const struct load_run *run,
                          const struct load_outcome *outcome)
{
    double due = (double)outcome->requests + (double)outcome->unsent;
    double planned = outcome->step.rate * (double)outcome->measured_ns / 1e9;
    double most = planned * (1 + backlog_share_max) + run->plan->threads +
                  (run->plan->poisson ? 4 * sqrt(planned) : 0);
    if (run->plan->loop == LOAD_OPEN && planned > 0 && due > most)
        doubt(verdict, LOAD_DOUBT_backlog,
              "%.0f requests were due, %.0f of them at the rate in the measured time, and the "
              "others before it.",
              due, planned);
}

/* With --requests all are sent at last. The last one was due at the end of `planned_ns`. If a user
 * was free then, it was sent soon after, and had its answer within the time of the slowest one. */
static void judge_rate(struct load_verdict *verdict, const struct load_run *run,
                       const struct load_outcome *outcome, const struct load_derived *d)
{
    double requests = (double)outcome->requests, rate = outcome->step.rate;
    if (run->plan->loop != LOAD_OPEN || run->plan->requests == 0 || rate <= 0 ||
        d->failed > d->refusals)
        return;
    uint64_t slowest_ns = outcome->response.most_ns > outcome->longest_wait_ns
                              ? outcome->response.most_ns
                              : outcome->longest_wait_ns;
    double planned_ns = (requests + (run->plan->poisson ? 4 * sqrt(requests) : 0)) / rate * 1e9;
    double most_ns = planned_ns * (1 + unsent_share_max) + (double)slowest_ns +
                     (double)outcome->connect.most_ns + (double)outcome->handshake.most_ns +
                     (double)outcome->lag.most_ns;
    if ((double)outcome->measured_ns > most_ns)
        doubt(verdict, LOAD_DOUBT_unsent,
              "%.0f requests took %s. At the requested rate they take %s at most, with the slowest "
              "answer.",
              requests, load_format_time((double)outcome->measured_ns).text,
              load_format_time(most_ns).text);
}

static void judge_schedule(struct load_verdict *verdict, const struct load_run *run,
                           const struct load_outcome *outcome, const struct load_derived *d)
{
    double due = (double)outcome->requests + (double)outcome->unsent;
    if (run->plan->loop == LOAD_OPEN && (double)outcome->unsent > unsent_share_max * due)
        doubt(verdict, LOAD_DOUBT_unsent,
              "%llu of %.0f requests that were due were not sent, because no user was free. %s",
              (unsigned long long)outcome->unsent, due,
              d->failed > d->refusals ? "After an error a user pauses."
                                      : "They would have been the slowest.");
    if (run->merged > 0 && run->merged < run->plan->shards)
        doubt(verdict, LOAD_DOUBT_shards, "The files hold %u of %u shards.", run->merged,
              run->plan->shards);
    if (run->merged > 0 && outcome->interrupted)
        doubt(verdict, LOAD_DOUBT_cut,
              "Its answers are divided by %s, the time of the run that lasted longest.",
              load_format_time((double)outcome->measured_ns).text);
    if (run->merged > 0 && (double)run->start_skew_ns > skew_ns_max)
        doubt(verdict, LOAD_DOUBT_skew, "The merged runs started %s apart; the limit is %s.",
              load_format_time((double)run->start_skew_ns).text,
              load_format_time(skew_ns_max).text);
}

/* Why there is no answer: errors, requests that still wait, or no request at all. */
static void judge_silence(struct load_verdict *verdict, const struct load_outcome *outcome,
                          const struct load_derived *d)
{
    if (d->failed > 0)
        doubt(verdict, LOAD_DOUBT_no_answers, "All %llu requests that ended have failed.",
              (unsigned long long)d->failed);
    else if (outcome->unfinished > 0)
        doubt(verdict, LOAD_DOUBT_no_answer_yet,
              "Requests under way at the end: %llu; the longest had waited for %s.",
              (unsigned long long)outcome->unfinished,
              load_format_time((double)outcome->longest_wait_ns).text);
    else if (outcome->requests == 0)
        doubt(verdict, LOAD_DOUBT_no_request, "None was due in the %s that were measured.",
              load_format_time((double)outcome->measured_ns).text);
    else
        doubt(verdict, LOAD_DOUBT_no_answer_yet, "No answer came in the measured time.");
}

/* An objective for errors says which share may fail. */
static bool has_limit_of_errors(const struct load_slos *slos)
{
    for (unsigned i = 0; i < slos->count; i++)
        if (slos->slo[i].of == LOAD_SLO_ERRORS)
            return true;
    return false;
}

static void judge_failures(struct load_verdict *verdict, const struct load_outcome *outcome,
                           const struct load_derived *d, const struct load_slos *slos)
{
    bool many = d->failed_share > failed_share_max && !has_limit_of_errors(slos);
    if (d->refusals == outcome->answers)
        doubt(verdict, LOAD_DOUBT_no_success, "All %llu answers have a status of 400 or above.",
              (unsigned long long)d->refusals);
    else if (d->failed > 0)
        doubt(verdict, many ? LOAD_DOUBT_failed : LOAD_DOUBT_some_failed,
              "%llu of %llu requests (%s): %llu without a whole and right answer, %llu with a "
              "status of 400 or above.",
              (unsigned long long)d->failed, (unsigned long long)d->ended,
              load_format_share(d->failed_share).text,
              (unsigned long long)(d->failed - d->refusals), (unsigned long long)d->refusals);
    if (outcome->error[LOAD_unexpected] > 0)
        doubt(verdict, LOAD_DOUBT_unexpected, "This happened %llu times.",
              (unsigned long long)outcome->error[LOAD_unexpected]);
}

/* Without this, requests that a server never answers would leave no trace. */
static void judge_unfinished(struct load_verdict *verdict, const struct load_outcome *outcome)
{
    double wait_ns = (double)outcome->longest_wait_ns;
    double median_ns = (double)load_durations_quantile_ns(&outcome->response, 0.5);
    if (outcome->longest_wait_ns > outcome->response.most_ns &&
        wait_ns > gap_share_max * (double)outcome->measured_ns &&
        wait_ns > gap_medians_max * median_ns)
        doubt(verdict, LOAD_DOUBT_unfinished,
              "Requests under way at the end: %llu; the longest had waited for %s. The slowest "
              "answer took %s.",
              (unsigned long long)outcome->unfinished, load_format_time(wait_ns).text,
              load_format_time((double)outcome->response.most_ns).text);
}

static void judge_gap(struct load_verdict *verdict, const struct load_run *run,
                      const struct load_outcome *outcome)
{
    double gap_ns = (double)outcome->longest_gap_ns;
    double median_ns = (double)load_durations_quantile_ns(&outcome->response, 0.5);
    if (run->plan->loop == LOAD_CLOSED && gap_ns > gap_share_max * (double)outcome->measured_ns &&
        gap_ns > gap_medians_max * median_ns)
        doubt(verdict, LOAD_DOUBT_gap,
              "No answer came for %s; the percentiles include one such request of each user.",
              load_format_time(gap_ns).text);
}

static void judge_tickets(struct load_verdict *verdict, const struct load_outcome *outcome)
{
    uint64_t refused = outcome->tickets_refused, offered = refused + outcome->handshakes_resumed;
    if ((double)refused > refused_share_max * (double)offered)
        doubt(verdict, LOAD_DOUBT_tickets_refused,
              "%llu of %llu handshakes that offered a ticket were full.",
              (unsigned long long)refused, (unsigned long long)offered);
}

static void judge_streams(struct load_verdict *verdict, const struct load_run *run,
                          const struct load_outcome *outcome)
{
    unsigned pipeline = run->plan->pipeline;
    if (outcome->streams_missing > 0 && outcome->streams_missing < pipeline)
        doubt(verdict, LOAD_DOUBT_streams,
              "A connection had %llu streams at most, and --pipeline is %u.",
              (unsigned long long)(pipeline - outcome->streams_missing), pipeline);
}

static void judge_counts(struct load_verdict *verdict, const struct load_run *run,
                         const struct load_outcome *outcome, const struct load_slos *slos)
{
    uint64_t count = load_trust_response(run, outcome)->count;
    for (unsigned i = 0; i < slos->count; i++) {
        const struct load_slo *slo = &slos->slo[i];
        if (slo->of == LOAD_SLO_QUANTILE && !load_trust_carries(count, slo->part))
            doubt(verdict, LOAD_DOUBT_few_for_slo,
                  "%llu answers are too few for %s, which needs %.0f.", (unsigned long long)count,
                  slo->text, ceil(3 / (1 - slo->part) - 1e-6));
    }
    if (count <= 3)
        doubt(verdict, LOAD_DOUBT_few_answers, "%llu answer%s no percentile.",
              (unsigned long long)count, count == 1 ? " supports" : "s support");
    else if (!load_trust_carries(count, 0.9999))
        doubt(verdict, LOAD_DOUBT_few_answers,
              "%llu answers support no percentile above p%.4g; higher ones are left out.",
              (unsigned long long)count, floor(1e4 - 3e4 / (double)count) / 100);
}

void load_trust_judge(const struct load_run *run, const struct load_outcome *outcome,
                      const struct load_slos *slos, struct load_verdict *ret_verdict)
{
    *ret_verdict = (struct load_verdict){ 0 };
    struct load_derived d = load_trust_derive(run, outcome);
    judge_generator(ret_verdict, run, outcome, &d);
    judge_backlog(ret_verdict, run, outcome);
    judge_rate(ret_verdict, run, outcome, &d);
    judge_schedule(ret_verdict, run, outcome, &d);
    if (outcome->answers == 0) {
        judge_silence(ret_verdict, outcome, &d);
        return;
    }
    judge_failures(ret_verdict, outcome, &d, slos);
    judge_unfinished(ret_verdict, outcome);
    judge_little(ret_verdict, &d, outcome);
    judge_tickets(ret_verdict, outcome);
    judge_streams(ret_verdict, run, outcome);
    judge_gap(ret_verdict, run, outcome);
    judge_counts(ret_verdict, run, outcome, slos);
}
