/* SPDX-License-Identifier: MIT
 *
 * A report as one JSON object. Names and meanings are those of docs/load-json.md;
 * `schema` changes when one of them goes. load/read.c reads it again.
 */
#include "load/forms.h"
#include "load/hdr.h"
#include "load/kin.h"
#include "load/names.h"
#include "log/escape.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { TARGETS_TOLD = 100 };

/* An object or array: what stands before its next member. */
struct list {
    FILE *out;
    bool any;
};

static void next(struct list *list)
{
    if (list->any)
        fputc(',', list->out);
    list->any = true;
}

static struct list begin(struct list *list, const char *name, char bracket)
{
    next(list);
    if (name)
        fprintf(list->out, "\"%s\":", name);
    fputc(bracket, list->out);
    return (struct list){ list->out, false };
}

static void end(struct list *list, char bracket)
{
    fputc(bracket, list->out);
}

/* In pieces, as it may be long; an escape is at most six times its byte. */
static void print_text(FILE *out, const char *text)
{
    char escaped[6 * 128];
    struct span left = span_text(text);
    fputc('"', out);
    while (left.len > 0) {
        size_t take = left.len < 128 ? left.len : 128;
        while (take > 100 && take < left.len && (left.at[take] & 0xc0) == 0x80)
            take--; /* before a character, not in it */
        size_t len = log_escape(escaped, sizeof(escaped), span_first(left, take), LOG_ESCAPE_JSON);
        fwrite(escaped, 1, len, out);
        left = span_skip(left, take);
    }
    fputc('"', out);
}

static void add_text(struct list *list, const char *name, const char *text)
{
    next(list);
    if (name)
        fprintf(list->out, "\"%s\":", name);
    print_text(list->out, text);
}

static void add_number(struct list *list, const char *name, uint64_t value)
{
    next(list);
    fprintf(list->out, "\"%s\":%" PRIu64, name, value);
}

static void add_null(struct list *list, const char *name)
{
    next(list);
    fprintf(list->out, "\"%s\":null", name);
}

static void add_real(struct list *list, const char *name, double value)
{
    if (!isfinite(value)) {
        add_null(list, name);
        return;
    }
    next(list);
    fprintf(list->out, "\"%s\":%.17g", name, value);
}

static void add_truth(struct list *list, const char *name, bool value)
{
    next(list);
    fprintf(list->out, "\"%s\":%s", name, value ? "true" : "false");
}

/* ---- what was asked ---- */

static void add_targets(struct list *list, const struct load_plan *plan)
{
    struct list targets = begin(list, "targets", '[');
    for (size_t i = 0; i < plan->target_count && i < TARGETS_TOLD; i++) {
        struct list target = begin(&targets, NULL, '{');
        add_text(&target, "host", plan->targets[i].host);
        add_text(&target, "path", plan->targets[i].path);
        add_real(&target, "weight", plan->targets[i].weight);
        end(&target, '}');
    }
    end(&targets, ']');
    add_number(list, "target_count", plan->target_count);
}

static void add_plan(struct list *list, const struct load_run *run)
{
    const struct load_plan *plan = run->plan;
    char kin[20];
    snprintf(kin, sizeof(kin), "%016" PRIx64, run->kin ? run->kin : load_kin(plan));
    struct list object = begin(list, "plan", '{');
    add_text(&object, "kin", kin);
    add_targets(&object, plan);
    add_real(&object, "zipf", plan->zipf);
    add_text(&object, "loop", load_loop_names[plan->loop]);
    struct list think = begin(&object, "think", '{');
    add_text(&think, "kind", load_think_names[plan->think.kind]);
    add_number(&think, "low_ns", plan->think.low_ns);
    add_number(&think, "high_ns", plan->think.high_ns);
    end(&think, '}');
#define LOAD_PLANNED(name) add_number(&object, #name, (uint64_t)plan->name);
#include "load/counts.def"
#undef LOAD_PLANNED
    add_number(&object, "requests", plan->requests);
    add_text(&object, "verify", load_verify_names[plan->verify]);
    add_number(&object, "threads", plan->threads);
    char seed[24]; /* as text: more digits than many readers' numbers have */
    snprintf(seed, sizeof(seed), "%" PRIu64, plan->seed);
    add_text(&object, "seed", seed);
    add_number(&object, "shard", plan->shard);
    add_number(&object, "shards", plan->shards);
    end(&object, '}');
}

/* ---- a step ---- */

static int add_durations(struct list *list, const char *name,
                         const struct load_durations *durations)
{
    char *blob = load_hdr_encode(durations);
    if (!blob)
        return -ENOMEM;
    struct list object = begin(list, name, '{');
    add_number(&object, "count", durations->count);
    add_number(&object, "min_ns", durations->least_ns);
    add_number(&object, "max_ns", durations->most_ns);
    add_real(&object, "mean_ns", load_durations_mean_ns(durations));
    add_real(&object, "sd_ns", load_durations_deviation_ns(durations));
    for (unsigned i = 0; i < LOAD_SHOWN; i++) {
        char member[16];
        snprintf(member, sizeof(member), "%s_ns", load_shown[i].name);
        if (load_trust_carries(durations->count, load_shown[i].part))
            add_number(&object, member, load_durations_quantile_ns(durations, load_shown[i].part));
        else
            add_null(&object, member);
    }
    add_real(&object, "sum_ns", durations->sum_ns);
    add_real(&object, "sum_squares_ns2", durations->sum_squares);
    add_text(&object, "hdr_v2_ns", blob);
    end(&object, '}');
    free(blob);
    return 0;
}

static void add_answers(struct list *list, const struct load_outcome *outcome)
{
    struct list status = begin(list, "status", '{');
    for (unsigned i = 0; i < LOAD_STATUS_MAX; i++) {
        char code[8];
        snprintf(code, sizeof(code), "%03u", i);
        if (outcome->status[i] > 0)
            add_number(&status, code, outcome->status[i]);
    }
    end(&status, '}');
    uint64_t class[5];
    load_forms_classes(outcome, class);
    struct list classes = begin(list, "classes", '{');
    for (unsigned i = 0; i < 5; i++) {
        char name[4] = { (char)('1' + i), 'x', 'x', '\0' };
        add_number(&classes, name, class[i]);
    }
    end(&classes, '}');
    struct list errors = begin(list, "errors", '{');
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        add_number(&errors, load_errors[i].name, outcome->error[i]);
    end(&errors, '}');
}

static void add_little(struct list *list, const struct load_derived *d)
{
    struct list little = begin(list, "little", '{');
    add_truth(&little, "applies", d->little);
    add_real(&little, "users", d->users);
    add_real(&little, "cycle_ns", d->cycle_ns);
    add_real(&little, "response_ns", d->response_ns);
    add_real(&little, "think_ns", d->think_ns);
    add_real(&little, "connect_ns", d->connect_ns);
    add_real(&little, "residual_ns", d->hidden_ns);
    add_real(&little, "residual_share", d->hidden_share);
    end(&little, '}');
}

static void add_cpu(struct list *list, const struct load_run *run, const struct load_derived *d)
{
    struct list generator = begin(list, "generator", '{');
    add_real(&generator, "cpu_ns_per_answer", d->generator_cost_ns);
    add_real(&generator, "cores_used", d->generator_cores);
    add_real(&generator, "busiest_thread_share", d->busiest_share);
    end(&generator, '}');
    if (!d->server) {
        add_null(list, "server");
        return;
    }
    struct list server = begin(list, "server", '{');
    add_real(&server, "demand_ns", d->demand_ns);
    add_real(&server, "cores_used", d->server_cores);
    add_real(&server, "one_core_answers_per_second", d->one_core_per_s);
    add_real(&server, "saturation_users_one_core", d->saturation_one_core);
    if (run->server_cpus > 0)
        add_real(&server, "saturation_users", d->saturation);
    else
        add_null(&server, "saturation_users");
    end(&server, '}');
}

static void add_verdict(struct list *list, const struct load_verdict *verdict)
{
    add_truth(list, "valid", !verdict->invalid);
    struct list doubts = begin(list, "doubts", '[');
    for (unsigned i = 0; i < LOAD_DOUBT_COUNT; i++) {
        if (!verdict->doubted[i])
            continue;
        struct list doubt = begin(&doubts, NULL, '{');
        add_text(&doubt, "name", load_doubts[i].name);
        add_truth(&doubt, "makes_invalid", load_doubts[i].invalid);
        add_text(&doubt, "reason", verdict->reason[i]);
        add_text(&doubt, "cure", load_doubts[i].cure);
        end(&doubt, '}');
    }
    end(&doubts, ']');
}

static void add_slos(struct list *list, const struct load_report *report,
                     const struct load_outcome *outcome)
{
    struct list slos = begin(list, "slos", '[');
    for (unsigned i = 0; i < report->slos->count; i++) {
        const struct load_slo *slo = &report->slos->slo[i];
        double value = load_slo_value(slo, report->run, outcome);
        struct list object = begin(&slos, NULL, '{');
        add_text(&object, "text", slo->text);
        add_real(&object, "value", value);
        add_truth(&object, "met", load_slo_met(slo, value));
        end(&object, '}');
    }
    end(&slos, ']');
}

/* Runs that are merged have no histogram for each second, so no percentile. */
static void add_second(struct list *object, const struct load_second *second, bool merged)
{
    add_number(object, "answers", second->answers);
    add_number(object, "errors", second->errors);
    add_number(object, "body_bytes", second->body_bytes);
    add_number(object, "connects", second->connects);
    for (unsigned i = 0; i < 5; i++) {
        char name[4] = { (char)('1' + i), 'x', 'x', '\0' };
        add_number(object, name, second->by_class[i]);
    }
    const struct {
        const char *name;
        uint64_t ns;
    } percentiles[] = { { "p50_ns", second->p50_ns },
                        { "p90_ns", second->p90_ns },
                        { "p99_ns", second->p99_ns } };
    for (unsigned i = 0; i < 3; i++)
        if (merged)
            add_null(object, percentiles[i].name);
        else
            add_number(object, percentiles[i].name, percentiles[i].ns);
    add_number(object, "max_ns", second->most_ns);
}

static int add_step(struct list *list, const struct load_report *report, size_t step)
{
    const struct load_outcome *outcome = &report->run->outcomes[step];
    const struct load_derived *d = &report->derived[step];
    struct list object = begin(list, NULL, '{');
    add_number(&object, "users", outcome->step.users);
    add_real(&object, "rate_per_second", outcome->step.rate);
    next(&object);
    fprintf(list->out, "\"began_unix_ns\":%" PRId64, outcome->began_unix_ns);
#define LOAD_COUNT(name, way) add_number(&object, #name, outcome->name);
#include "load/counts.def"
#undef LOAD_COUNT
    add_real(&object, "user_ns", outcome->user_ns);
    add_real(&object, "thought_ns", outcome->thought_ns);
    add_real(&object, "throughput_per_second", d->throughput_per_s);
    add_real(&object, "answers_per_second", d->answers_per_s);
    add_real(&object, "response_mean_ns", d->response_ns);
    add_real(&object, "failed_share", d->failed_share);
    add_answers(&object, outcome);
    int result = 0;
#define LOAD_DURATIONS(name) \
    if (result == 0) \
        result = add_durations(&object, #name, &outcome->name);
#include "load/counts.def"
#undef LOAD_DURATIONS
    add_little(&object, d);
    add_cpu(&object, report->run, d);
    add_verdict(&object, &report->verdicts[step]);
    add_slos(&object, report, outcome);
    struct list seconds = begin(&object, "seconds", '[');
    for (size_t i = 0; i < outcome->second_count; i++) {
        struct list second = begin(&seconds, NULL, '{');
        add_second(&second, &outcome->seconds[i], report->run->merged > 0);
        end(&second, '}');
    }
    end(&seconds, ']');
    end(&object, '}');
    return result;
}

int load_forms_json(const struct load_report *report, FILE *out)
{
    const struct load_run *run = report->run;
    struct list top = { out, false };
    int result = 0;
    fputc('{', out);
    add_number(&top, "schema", LOAD_SCHEMA);
    add_text(&top, "weir", WEIR_VERSION);
    add_text(&top, "command_line", run->command_line ? run->command_line : "");
    add_truth(&top, "interrupted", run->interrupted);
    add_number(&top, "merged_runs", run->merged);
    add_number(&top, "start_skew_ns", run->start_skew_ns);
    add_number(&top, "server_cpus", run->server_cpus);
    add_truth(&top, "valid", report->conclusion != LOAD_INVALID);
    if (report->slos->count > 0)
        add_truth(&top, "slos_met", report->slos_met);
    else
        add_null(&top, "slos_met");
    add_number(&top, "exit_status", report->conclusion);
    add_plan(&top, run);
    struct list steps = begin(&top, "steps", '[');
    for (size_t i = 0; i < run->outcome_count && result == 0; i++)
        result = add_step(&steps, report, i);
    end(&steps, ']');
    fputs("}\n", out);
    return result;
}

/* ---- a line for each second ---- */

void load_forms_ndjson(const struct load_report *report, FILE *out)
{
    for (size_t step = 0; step < report->run->outcome_count; step++) {
        const struct load_outcome *outcome = &report->run->outcomes[step];
        for (size_t i = 0; i < outcome->second_count; i++) {
            struct list line = { out, false };
            fputc('{', out);
            add_number(&line, "step", step + 1);
            add_number(&line, "users", outcome->step.users);
            add_number(&line, "second", i);
            next(&line);
            fprintf(out, "\"unix_ns\":%" PRId64, outcome->began_unix_ns + (int64_t)i * 1000000000);
            add_second(&line, &outcome->seconds[i], report->run->merged > 0);
            fputs("}\n", out);
        }
    }
}
