/* SPDX-License-Identifier: MIT
 *
 * The report for people, 80 columns wide. It has all numbers of a single step, or a row for each
 * of several steps. load/judgement.c says whether the result is valid, and what the rows mean.
 */
#include "load/format.h"
#include "load/forms.h"
#include "load/result.h"

#include <inttypes.h>

enum { NAME_WIDTH = 24, COLUMN_WIDTH = 12, SHOWN_TARGETS = 3 };

/* ---- the plan ---- */

static void print_think(const struct load_think *think, FILE *out)
{
    static const char *const kinds[] = { "", "exponential, ", "uniform, " };
    double mean_ns = ((double)think->low_ns + (double)think->high_ns) / 2;
    if (think->high_ns == 0)
        fputs(", no think time", out);
    else
        fprintf(out, ", think time %s%s%s", kinds[think->kind],
                think->kind == LOAD_THINK_UNIFORM ? "mean " : "", load_format_time(mean_ns).text);
}

static void print_loop(const struct load_plan *plan, FILE *out)
{
    switch (plan->loop) {
    case LOAD_CLOSED:
        fputs("Closed loop", out);
        print_think(&plan->think, out);
        break;
    case LOAD_PACED:
        fprintf(out, "Paced: each user sends a request every %s",
                load_format_time((double)plan->pace_ns).text);
        break;
    case LOAD_OPEN:
        fprintf(out, "Open loop, %s arrivals", plan->poisson ? "Poisson" : "evenly spaced");
        break;
    }
    if (plan->pipeline > 1 && !plan->keep_alive)
        fprintf(out, "; a connection for each %u streams", plan->pipeline);
    else
        fputs(plan->keep_alive ? "; keep-alive" : "; a connection for each request", out);
    if (plan->pipeline > 1 && plan->keep_alive)
        fprintf(out, plan->http2 ? "; %u streams each" : "; pipelines of %u", plan->pipeline);
    fputc('\n', out);
    if (plan->http2)
        fprintf(out, "HTTP/2 %s\n", plan->tls == LOAD_TLS_NONE ? "by prior knowledge" : "by ALPN");
    if (plan->tls != LOAD_TLS_NONE)
        fprintf(out, "TLS: %s, certificates %s\n",
                plan->tls == LOAD_TLS_FULL ? "full handshakes" : "sessions are resumed",
                plan->insecure ? "not verified" : "verified");
}

static void print_target(const struct load_target *target, FILE *out)
{
    fputs(target->socket ? "unix:" : target->tls ? "https://" : "http://", out);
    load_format_text(out, target->socket ? target->socket : target->host, LOAD_FORMAT_TEXT_MAX / 2);
    fputs(target->socket ? ":" : "", out);
    load_format_text(out, target->path, LOAD_FORMAT_TEXT_MAX / 2);
    fputc('\n', out);
}

/* A file has no number of steps that the plan had. */
static void print_interruption(const struct load_run *run, FILE *out)
{
    size_t count = run->outcome_count, planned = run->plan->step_count;
    bool amid = count > 0 && run->outcomes[count - 1].interrupted;
    fputs("Interrupted", out);
    if (count > 0 && planned > count)
        fprintf(out, " %s step %zu of %zu", amid ? "in" : "after", count, planned);
    fputs(amid        ? ": the numbers are those up to then\n"
          : count > 0 ? ": the numbers are those of whole steps\n"
                      : " before the first measured time\n",
          out);
}

static void print_plan(const struct load_run *run, FILE *out)
{
    const struct load_plan *plan = run->plan;
    for (size_t i = 0; i < plan->target_count && i < SHOWN_TARGETS; i++)
        print_target(&plan->targets[i], out);
    if (plan->target_count > SHOWN_TARGETS)
        fprintf(out, "and %zu more\n", plan->target_count - SHOWN_TARGETS);
    print_loop(plan, out);
    if (run->merged > 0)
        fprintf(out, "%u runs merged, which started %s apart\n", run->merged,
                load_format_time((double)run->start_skew_ns).text);
    if (run->interrupted)
        print_interruption(run, out);
}

/* ---- one step ---- */

static void print_name(FILE *out, const char *name)
{
    fprintf(out, "  %-*s", NAME_WIDTH, name);
}

static void print_word(FILE *out, enum load_word word)
{
    print_name(out, load_words[word].label);
}

/* With a rate, each request that is due in the measured time is sent or not. */
static void print_due(const struct load_outcome *outcome, FILE *out)
{
    print_word(out, LOAD_WORD_due);
    fprintf(out, "%*" PRIu64 "  %" PRIu64 " sent, %" PRIu64 " not sent\n", COLUMN_WIDTH,
            outcome->requests + outcome->unsent, outcome->requests, outcome->unsent);
}

static void print_head(const struct load_report *report, size_t step, FILE *out)
{
    const struct load_outcome *outcome = &report->run->outcomes[step];
    const struct load_derived *d = &report->derived[step];
    fprintf(out, "\n%u user%s", outcome->step.users, outcome->step.users == 1 ? "" : "s");
    if (report->run->plan->loop == LOAD_OPEN)
        fprintf(out, ", rate of %s requests/s requested",
                load_format_number(outcome->step.rate).text);
    fprintf(out, ", measured for %s\n\n", load_format_time((double)outcome->measured_ns).text);
    if (report->run->plan->loop == LOAD_OPEN)
        print_due(outcome, out);
    print_word(out, LOAD_WORD_throughput);
    fprintf(out, "%*s requests/s\n", COLUMN_WIDTH, load_format_number(d->throughput_per_s).text);
    print_word(out, LOAD_WORD_response_mean);
    fprintf(out, "%*s%s\n", COLUMN_WIDTH,
            outcome->answers > 0 ? load_format_time(d->response_ns).text : "-   ",
            report->run->plan->loop == LOAD_CLOSED ? "  closed loop, as measured"
                                                   : "  from when requests were sent");
    print_word(out, LOAD_WORD_failed);
    fprintf(out, "%*s  %" PRIu64 " of %" PRIu64 "\n", COLUMN_WIDTH,
            load_format_share(d->failed_share).text, d->failed, d->ended);
}

struct column {
    const char *name;
    const struct load_durations *durations;
};

enum { COLUMNS_MAX = 4 };

static unsigned choose_columns(const struct load_report *report, const struct load_outcome *outcome,
                               struct column *columns)
{
    unsigned count = 0;
    if (report->run->plan->loop != LOAD_CLOSED)
        columns[count++] =
            (struct column){ load_words[LOAD_WORD_since_due].label, &outcome->intended };
    columns[count++] = (struct column){ load_words[LOAD_WORD_response].label, &outcome->response };
    columns[count++] =
        (struct column){ load_words[LOAD_WORD_first_byte].label, &outcome->first_byte };
    columns[count++] = (struct column){ load_words[LOAD_WORD_connect].label, &outcome->connect };
    return count;
}

static void print_row(FILE *out, const char *name, const struct column *columns, unsigned count,
                      double (*value)(const struct load_durations *))
{
    print_name(out, name);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, " %*s", COLUMN_WIDTH,
                columns[i].durations->count > 0 ? load_format_time(value(columns[i].durations)).text
                                                : "-   ");
    fputc('\n', out);
}

static double least_of(const struct load_durations *durations)
{
    return (double)durations->least_ns;
}

static double most_of(const struct load_durations *durations)
{
    return (double)durations->most_ns;
}

static void print_percentile(FILE *out, const struct load_shown *shown,
                             const struct column *columns, unsigned count)
{
    print_name(out, shown->text);
    for (unsigned i = 0; i < count; i++) {
        const struct load_durations *durations = columns[i].durations;
        double ns = (double)load_durations_quantile_ns(durations, shown->part);
        fprintf(out, " %*s", COLUMN_WIDTH,
                load_trust_carries(durations->count, shown->part) ? load_format_time(ns).text
                                                                  : "-   ");
    }
    fputc('\n', out);
}

static void print_durations(const struct load_report *report, const struct load_outcome *outcome,
                            FILE *out)
{
    struct column columns[COLUMNS_MAX];
    unsigned count = choose_columns(report, outcome, columns);
    fputc('\n', out);
    print_name(out, "");
    for (unsigned i = 0; i < count; i++)
        fprintf(out, " %*s", COLUMN_WIDTH, columns[i].name);
    fputc('\n', out);
    print_word(out, LOAD_WORD_counted);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, " %*" PRIu64, COLUMN_WIDTH, columns[i].durations->count);
    fputc('\n', out);
    print_row(out, "mean", columns, count, load_durations_mean_ns);
    print_row(out, "standard deviation", columns, count, load_durations_deviation_ns);
    print_row(out, "min", columns, count, least_of);
    for (unsigned i = 0; i < LOAD_SHOWN; i++)
        print_percentile(out, &load_shown[i], columns, count);
    print_row(out, "max", columns, count, most_of);
}

static void print_traffic(const struct load_outcome *outcome, const struct load_derived *d,
                          FILE *out)
{
    uint64_t classes[5];
    load_forms_classes(outcome, classes);
    fputc('\n', out);
    print_word(out, LOAD_WORD_answers);
    for (unsigned i = 0; i < 5; i++)
        if (classes[i] > 0)
            fprintf(out, " %uxx: %" PRIu64, i + 1, classes[i]);
    fprintf(out, "%s\n", outcome->answers == 0 ? " none" : "");
    print_word(out, LOAD_WORD_received);
    fprintf(
        out, " %s (%s/s), bodies %s\n", load_format_bytes((double)outcome->received_bytes).text,
        load_format_bytes(d->seconds > 0 ? (double)outcome->received_bytes / d->seconds : 0).text,
        load_format_bytes((double)outcome->body_bytes).text);
    print_word(out, LOAD_WORD_connections);
    fprintf(out, " %" PRIu64 " opened", outcome->connects);
    if (outcome->reopened > 0)
        fprintf(out, "; %" PRIu64 " requests sent again on a new one", outcome->reopened);
    fputc('\n', out);
}

/* ---- TLS and HTTP/2, of all steps together ---- */

static void print_agreed(const struct load_agreed *agreed, uint64_t answers, FILE *out)
{
    print_name(out, "TLS");
    fputc(' ', out);
    load_format_text(out, agreed->protocol, sizeof(agreed->protocol));
    fputc(' ', out);
    load_format_text(out, agreed->cipher, sizeof(agreed->cipher));
    fputc(' ', out);
    load_format_text(out, agreed->group, sizeof(agreed->group));
    if (agreed->answers < answers)
        fprintf(out, ": %" PRIu64 " answers", agreed->answers);
    fputc('\n', out);
}

static void print_handshake_times(const struct load_durations *handshake, FILE *out)
{
    if (handshake->count == 0)
        return;
    double p50_ns = (double)load_durations_quantile_ns(handshake, 0.5);
    double p99_ns = (double)load_durations_quantile_ns(handshake, 0.99);
    print_name(out, "");
    fprintf(out, " mean %s, p50 %s, p99 %s, max %s\n",
            load_format_time(load_durations_mean_ns(handshake)).text,
            load_trust_carries(handshake->count, 0.5) ? load_format_time(p50_ns).text : "-",
            load_trust_carries(handshake->count, 0.99) ? load_format_time(p99_ns).text : "-",
            load_format_time((double)handshake->most_ns).text);
}

/* The sum of a count over all steps. `offset` is that of the count in struct load_outcome. */
static uint64_t sum_of(const struct load_run *run, size_t offset)
{
    uint64_t sum = 0, count;
    for (size_t i = 0; i < run->outcome_count; i++) {
        memcpy(&count, (const char *)&run->outcomes[i] + offset, sizeof(count));
        sum += count;
    }
    return sum;
}

#define SUM_OF(run, member) sum_of(run, offsetof(struct load_outcome, member))

static void print_tls(const struct load_run *run, FILE *out)
{
    struct load_agreed agreed[LOAD_AGREED_MAX] = { 0 };
    if (run->plan->tls == LOAD_TLS_NONE)
        return;
    for (size_t i = 0; i < run->outcome_count; i++)
        load_result_add_agreed(agreed, run->outcomes[i].agreed);
    if (run->outcome_count > 1)
        fputc('\n', out);
    print_word(out, LOAD_WORD_handshakes);
    fprintf(out, " %" PRIu64 " full, %" PRIu64 " resumed, %" PRIu64 " failed\n",
            SUM_OF(run, handshakes_full), SUM_OF(run, handshakes_resumed),
            SUM_OF(run, handshakes_failed));
    if (run->outcome_count == 1)
        print_handshake_times(&run->outcomes[0].handshake, out);
    for (unsigned i = 0; i < LOAD_AGREED_MAX; i++)
        if (agreed[i].answers > 0)
            print_agreed(&agreed[i], SUM_OF(run, answers), out);
}

static void print_http2(const struct load_run *run, FILE *out)
{
    uint64_t goaways = SUM_OF(run, goaways), resets = SUM_OF(run, resets);
    if (goaways + resets == 0)
        return;
    print_name(out, "HTTP/2");
    fprintf(out, " %" PRIu64 " GOAWAY, %" PRIu64 " RST_STREAM; %" PRIu64 " requests sent again\n",
            goaways, resets, SUM_OF(run, unprocessed));
}

/* ---- errors, of all steps together ---- */

static void print_errors(const struct load_run *run, FILE *out)
{
    const char *phase = "";
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++) {
        uint64_t count = SUM_OF(run, error[i]);
        if (count == 0)
            continue;
        if (*phase == '\0')
            fputs("\nErrors\n", out);
        if (strcmp(phase, load_result_errors[i].phase) != 0)
            fprintf(out, "  %s\n", load_result_errors[i].phase);
        phase = load_result_errors[i].phase;
        fprintf(out, "  %10" PRIu64 "  %s\n", count, load_result_errors[i].sentence);
    }
}

/* ---- CPU time, and Little's law ---- */

static void print_server(const struct load_run *run, const struct load_derived *d, FILE *out)
{
    if (!d->server)
        return;
    print_word(out, LOAD_WORD_server_cpu);
    fprintf(out, " %s per answer, %s cores in use\n", load_format_time(d->demand_ns).text,
            load_format_number(d->server_cores).text);
    print_word(out, LOAD_WORD_saturation);
    fprintf(out, " %s users, %s answers/s for one core\n",
            load_format_number(d->saturation_one_core).text,
            load_format_number(d->one_core_per_s).text);
    if (run->server_cpus > 1) {
        print_name(out, "");
        fprintf(out, " %s users for its %u cores\n", load_format_number(d->saturation).text,
                run->server_cpus);
    }
}

static void print_generator(const struct load_outcome *outcome, const struct load_derived *d,
                            FILE *out)
{
    print_word(out, LOAD_WORD_generator_cpu);
    fprintf(out, " %s per answer, busiest thread %.0f %%\n",
            load_format_time(d->generator_cost_ns).text, d->busiest_share * 100);
    if (outcome->lag.count > 0) {
        print_word(out, LOAD_WORD_late);
        fprintf(out, " p99 %s, at most %s\n",
                load_format_time((double)load_durations_quantile_ns(&outcome->lag, 0.99)).text,
                load_format_time((double)outcome->lag.most_ns).text);
    }
    print_word(out, LOAD_WORD_little);
    if (d->little)
        fprintf(out, " a user's cycle is %s; its parts explain %.2f %%\n",
                load_format_time(d->cycle_ns).text, (1 - d->hidden_share) * 100);
    else
        fputs(" applies to closed loops without pipelines\n", out);
    print_word(out, LOAD_WORD_gap);
    fprintf(out, " %s\n", load_format_time((double)outcome->longest_gap_ns).text);
}

static void print_one(const struct load_report *report, FILE *out)
{
    const struct load_outcome *outcome = &report->run->outcomes[0];
    const struct load_derived *d = &report->derived[0];
    print_head(report, 0, out);
    if (outcome->answers == 0)
        return;
    print_durations(report, outcome, out);
    print_traffic(outcome, d, out);
    print_server(report->run, d, out);
    print_generator(outcome, d, out);
}

/* ---- several steps ---- */

const char *load_forms_level_name(const struct load_report *report)
{
    return report->run->plan->loop == LOAD_OPEN ? "rate/s" : "users";
}

struct load_formatted load_forms_level(const struct load_report *report, size_t step)
{
    const struct load_step *level = &report->run->outcomes[step].step;
    struct load_formatted figure;
    (void)snprintf(figure.text, sizeof(figure.text), "%u", level->users);
    return report->run->plan->loop == LOAD_OPEN ? load_format_number(level->rate) : figure;
}

static void print_step(const struct load_report *report, size_t step, FILE *out)
{
    const struct load_outcome *outcome = &report->run->outcomes[step];
    const struct load_derived *d = &report->derived[step];
    const struct load_durations *durations = load_trust_response(report->run, outcome);
    double p50_ns = (double)load_durations_quantile_ns(durations, 0.5);
    double p99_ns = (double)load_durations_quantile_ns(durations, 0.99);
    fprintf(out, "%7s %11s %9s %9s %9s %9s %8s %8s%s\n", load_forms_level(report, step).text,
            load_format_number(d->throughput_per_s).text,
            load_format_time(load_durations_mean_ns(durations)).text,
            durations->count > 0 ? load_format_time(p50_ns).text : "-",
            load_trust_carries(durations->count, 0.99) ? load_format_time(p99_ns).text : "-",
            load_format_time((double)durations->most_ns).text,
            load_format_share(d->failed_share).text,
            d->server ? load_format_time(d->demand_ns).text : "-",
            report->verdicts[step].invalid ? " !" : "");
}

static void print_steps(const struct load_report *report, FILE *out)
{
    fprintf(out, "\nResponse times %s\n\n",
            report->run->plan->loop == LOAD_CLOSED ? "of a closed loop, as measured"
                                                   : "from the time when requests were due");
    fprintf(out, "%7s %11s %9s %9s %9s %9s %8s %8s\n", load_forms_level_name(report), "requests/s",
            "mean", "p50", "p99", "max", "failed", "CPU/ans.");
    for (size_t i = 0; i < report->run->outcome_count; i++)
        print_step(report, i, out);
}

void load_forms_text(const struct load_report *report, bool explain, FILE *out)
{
    print_plan(report->run, out);
    if (report->run->outcome_count == 1)
        print_one(report, out);
    else
        print_steps(report, out);
    print_tls(report->run, out);
    print_http2(report->run, out);
    print_errors(report->run, out);
    load_forms_judgement(report, out);
    if (explain)
        load_forms_words(report, out);
}
