/* SPDX-License-Identifier: MIT
 *
 * A report as one JSON object. docs/load-json.md describes its names. When a name goes or changes
 * its meaning, `schema` rises. load/read.c reads the object.
 */
#include "load/forms.h"
#include "load/hdr.h"
#include "load/plan.h"
#include "load/result.h"
#include "json/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { TARGETS_TOLD = 100 };

/* ---- the plan ---- */

static void add_targets(struct json_writer *writer, const struct load_plan *plan)
{
    struct json_writer targets = json_writer_begin(writer, "targets", '[');
    for (size_t i = 0; i < plan->target_count && i < TARGETS_TOLD; i++) {
        struct json_writer target = json_writer_begin(&targets, NULL, '{');
        json_writer_add_text(&target, "scheme", plan->targets[i].tls ? "https" : "http");
        json_writer_add_text(&target, "host", plan->targets[i].host);
        if (plan->targets[i].socket)
            json_writer_add_text(&target, "socket", plan->targets[i].socket);
        else
            json_writer_add_null(&target, "socket");
        json_writer_add_text(&target, "path", plan->targets[i].path);
        json_writer_add_real(&target, "weight", plan->targets[i].weight);
        json_writer_end(&target, '}');
    }
    json_writer_end(&targets, ']');
    json_writer_add_number(writer, "target_count", plan->target_count);
}

static void add_plan(struct json_writer *writer, const struct load_run *run)
{
    const struct load_plan *plan = run->plan;
    char digest[20];
    snprintf(digest, sizeof(digest), "%016" PRIx64,
             run->plan_digest ? run->plan_digest : load_plan_digest(plan));
    struct json_writer object = json_writer_begin(writer, "plan", '{');
    json_writer_add_text(&object, "kin", digest);
    add_targets(&object, plan);
    json_writer_add_real(&object, "zipf", plan->zipf);
    json_writer_add_text(&object, "loop", load_result_loops[plan->loop]);
    struct json_writer think = json_writer_begin(&object, "think", '{');
    json_writer_add_text(&think, "kind", load_result_thinks[plan->think.kind]);
    json_writer_add_number(&think, "low_ns", plan->think.low_ns);
    json_writer_add_number(&think, "high_ns", plan->think.high_ns);
    json_writer_end(&think, '}');
#define LOAD_PLANNED(name) json_writer_add_number(&object, #name, (uint64_t)plan->name);
#include "load/counts.def"
#undef LOAD_PLANNED
    json_writer_add_number(&object, "requests", plan->requests);
    json_writer_add_text(&object, "verify", load_result_verifies[plan->verify]);
    json_writer_add_text(&object, "protocol", load_result_protocols[plan->http2]);
    json_writer_add_text(&object, "tls", load_result_sessions[plan->tls]);
    json_writer_add_bool(&object, "insecure", plan->insecure);
    json_writer_add_number(&object, "threads", plan->threads);
    char seed[24]; /* as text: many JSON readers lose digits of such a number */
    snprintf(seed, sizeof(seed), "%" PRIu64, plan->seed);
    json_writer_add_text(&object, "seed", seed);
    json_writer_add_number(&object, "shard", plan->shard);
    json_writer_add_number(&object, "shards", plan->shards);
    json_writer_end(&object, '}');
}

/* ---- a step ---- */

static int add_durations(struct json_writer *writer, const char *name,
                         const struct load_durations *durations)
{
    char *blob = load_hdr_encode(durations);
    if (!blob)
        return -ENOMEM;
    struct json_writer object = json_writer_begin(writer, name, '{');
    json_writer_add_number(&object, "count", durations->count);
    json_writer_add_number(&object, "min_ns", durations->least_ns);
    json_writer_add_number(&object, "max_ns", durations->most_ns);
    json_writer_add_real(&object, "mean_ns", load_durations_mean_ns(durations));
    json_writer_add_real(&object, "sd_ns", load_durations_deviation_ns(durations));
    for (unsigned i = 0; i < LOAD_SHOWN; i++) {
        char member[16];
        snprintf(member, sizeof(member), "%s_ns", load_shown[i].name);
        if (load_trust_carries(durations->count, load_shown[i].part))
            json_writer_add_number(&object, member,
                                   load_durations_quantile_ns(durations, load_shown[i].part));
        else
            json_writer_add_null(&object, member);
    }
    json_writer_add_real(&object, "sum_ns", durations->sum_ns);
    json_writer_add_real(&object, "sum_squares_ns2", durations->sum_squares);
    json_writer_add_text(&object, "hdr_v2_ns", blob);
    json_writer_end(&object, '}');
    free(blob);
    return 0;
}

static int add_tls(struct json_writer *writer, const struct load_plan *plan,
                   const struct load_outcome *outcome)
{
    if (plan->tls == LOAD_TLS_NONE) {
        json_writer_add_null(writer, "tls");
        return 0;
    }
    struct json_writer object = json_writer_begin(writer, "tls", '{');
#define LOAD_TLS_COUNT(name) json_writer_add_number(&object, #name, outcome->name);
#include "load/counts.def"
#undef LOAD_TLS_COUNT
    int result = add_durations(&object, "handshake", &outcome->handshake);
    struct json_writer agreed = json_writer_begin(&object, "agreed", '[');
    for (unsigned i = 0; i < LOAD_AGREED_MAX; i++) {
        const struct load_agreed *one = &outcome->agreed[i];
        if (one->answers == 0)
            continue;
        struct json_writer element = json_writer_begin(&agreed, NULL, '{');
        json_writer_add_text(&element, "protocol", one->protocol);
        json_writer_add_text(&element, "cipher", one->cipher);
        json_writer_add_text(&element, "group", one->group);
        json_writer_add_number(&element, "answers", one->answers);
        json_writer_end(&element, '}');
    }
    json_writer_end(&agreed, ']');
    json_writer_end(&object, '}');
    return result;
}

static void add_http2(struct json_writer *writer, const struct load_plan *plan,
                      const struct load_outcome *outcome)
{
    if (!plan->http2) {
        json_writer_add_null(writer, "http2");
        return;
    }
    struct json_writer object = json_writer_begin(writer, "http2", '{');
#define LOAD_HTTP2_COUNT(name, how) json_writer_add_number(&object, #name, outcome->name);
#include "load/counts.def"
#undef LOAD_HTTP2_COUNT
    json_writer_end(&object, '}');
}

static void add_answers(struct json_writer *writer, const struct load_outcome *outcome)
{
    struct json_writer status = json_writer_begin(writer, "status", '{');
    for (unsigned i = 0; i < LOAD_STATUS_MAX; i++) {
        char code[8];
        snprintf(code, sizeof(code), "%03u", i);
        if (outcome->status[i] > 0)
            json_writer_add_number(&status, code, outcome->status[i]);
    }
    json_writer_end(&status, '}');
    uint64_t class[5];
    load_forms_classes(outcome, class);
    struct json_writer classes = json_writer_begin(writer, "classes", '{');
    for (unsigned i = 0; i < 5; i++) {
        char name[4] = { (char)('1' + i), 'x', 'x', '\0' };
        json_writer_add_number(&classes, name, class[i]);
    }
    json_writer_end(&classes, '}');
    struct json_writer errors = json_writer_begin(writer, "errors", '{');
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        json_writer_add_number(&errors, load_result_errors[i].name, outcome->error[i]);
    json_writer_end(&errors, '}');
}

static void add_little(struct json_writer *writer, const struct load_derived *d)
{
    struct json_writer little = json_writer_begin(writer, "little", '{');
    json_writer_add_bool(&little, "applies", d->little);
    json_writer_add_real(&little, "users", d->users);
    json_writer_add_real(&little, "cycle_ns", d->cycle_ns);
    json_writer_add_real(&little, "response_ns", d->response_ns);
    json_writer_add_real(&little, "think_ns", d->think_ns);
    json_writer_add_real(&little, "late_ns", d->late_ns);
    json_writer_add_real(&little, "connect_ns", d->connect_ns);
    json_writer_add_real(&little, "close_ns", d->close_ns);
    json_writer_add_real(&little, "residual_ns", d->hidden_ns);
    json_writer_add_real(&little, "residual_share", d->hidden_share);
    json_writer_end(&little, '}');
}

static void add_cpu(struct json_writer *writer, const struct load_run *run,
                    const struct load_derived *d)
{
    struct json_writer generator = json_writer_begin(writer, "generator", '{');
    json_writer_add_real(&generator, "cpu_ns_per_answer", d->generator_cost_ns);
    json_writer_add_real(&generator, "cores_used", d->generator_cores);
    json_writer_add_real(&generator, "busiest_thread_share", d->busiest_share);
    json_writer_end(&generator, '}');
    if (!d->server) {
        json_writer_add_null(writer, "server");
        return;
    }
    struct json_writer server = json_writer_begin(writer, "server", '{');
    json_writer_add_real(&server, "demand_ns", d->demand_ns);
    json_writer_add_real(&server, "cores_used", d->server_cores);
    json_writer_add_real(&server, "one_core_answers_per_second", d->one_core_per_s);
    json_writer_add_real(&server, "saturation_users_one_core", d->saturation_one_core);
    if (run->server_cpus > 0)
        json_writer_add_real(&server, "saturation_users", d->saturation);
    else
        json_writer_add_null(&server, "saturation_users");
    json_writer_end(&server, '}');
}

static void add_verdict(struct json_writer *writer, const struct load_verdict *verdict)
{
    json_writer_add_bool(writer, "valid", !verdict->invalid);
    struct json_writer doubts = json_writer_begin(writer, "doubts", '[');
    for (unsigned i = 0; i < LOAD_DOUBT_COUNT; i++) {
        if (!verdict->doubted[i])
            continue;
        struct json_writer doubt = json_writer_begin(&doubts, NULL, '{');
        json_writer_add_text(&doubt, "name", load_doubts[i].name);
        json_writer_add_bool(&doubt, "makes_invalid", load_doubts[i].invalid);
        json_writer_add_text(&doubt, "reason", verdict->reason[i]);
        json_writer_add_text(&doubt, "cure", load_doubts[i].cure);
        json_writer_end(&doubt, '}');
    }
    json_writer_end(&doubts, ']');
}

static void add_slos(struct json_writer *writer, const struct load_report *report,
                     const struct load_outcome *outcome)
{
    struct json_writer slos = json_writer_begin(writer, "slos", '[');
    for (unsigned i = 0; i < report->slos->count; i++) {
        const struct load_slo *slo = &report->slos->slo[i];
        double value = load_slo_value(slo, report->run, outcome);
        struct json_writer object = json_writer_begin(&slos, NULL, '{');
        json_writer_add_text(&object, "text", slo->text);
        json_writer_add_real(&object, "value", value);
        json_writer_add_bool(&object, "met", load_slo_met(slo, value));
        json_writer_end(&object, '}');
    }
    json_writer_end(&slos, ']');
}

static void add_second(struct json_writer *object, const struct load_second *second)
{
    json_writer_add_number(object, "answers", second->answers);
    json_writer_add_number(object, "errors", second->errors);
    json_writer_add_number(object, "body_bytes", second->body_bytes);
    json_writer_add_number(object, "connects", second->connects);
    for (unsigned i = 0; i < 5; i++) {
        char name[4] = { (char)('1' + i), 'x', 'x', '\0' };
        json_writer_add_number(object, name, second->by_class[i]);
    }
    const struct {
        const char *name;
        uint64_t ns;
    } percentiles[] = { { "p50_ns", second->p50_ns },
                        { "p90_ns", second->p90_ns },
                        { "p99_ns", second->p99_ns } };
    for (unsigned i = 0; i < 3; i++)
        if (second->hdr)
            json_writer_add_number(object, percentiles[i].name, percentiles[i].ns);
        else
            json_writer_add_null(object, percentiles[i].name);
    json_writer_add_number(object, "max_ns", second->most_ns);
    if (second->hdr)
        json_writer_add_text(object, "hdr_v2_ns", second->hdr);
    else
        json_writer_add_null(object, "hdr_v2_ns");
}

static int add_step(struct json_writer *writer, const struct load_report *report, size_t step)
{
    const struct load_outcome *outcome = &report->run->outcomes[step];
    const struct load_derived *d = &report->derived[step];
    struct json_writer object = json_writer_begin(writer, NULL, '{');
    json_writer_add_number(&object, "users", outcome->step.users);
    json_writer_add_real(&object, "rate_per_second", outcome->step.rate);
    json_writer_add_bool(&object, "interrupted", outcome->interrupted);
    json_writer_next(&object, "began_unix_ns");
    fprintf(writer->out, "%" PRId64, outcome->began_unix_ns);
#define LOAD_COUNT(name, way)  json_writer_add_number(&object, #name, outcome->name);
#define LOAD_ENDING(name, way) json_writer_add_number(&object, #name, outcome->name);
#include "load/counts.def"
#undef LOAD_COUNT
#undef LOAD_ENDING
    json_writer_add_real(&object, "user_ns", outcome->user_ns);
    json_writer_add_real(&object, "thought_ns", outcome->thought_ns);
    json_writer_add_real(&object, "throughput_per_second", d->throughput_per_s);
    json_writer_add_real(&object, "answers_per_second", d->answers_per_s);
    json_writer_add_real(&object, "response_mean_ns", d->response_ns);
    json_writer_add_real(&object, "failed_share", d->failed_share);
    add_answers(&object, outcome);
    int result = 0;
#define LOAD_DURATIONS(name) \
    if (result == 0) \
        result = add_durations(&object, #name, &outcome->name);
#include "load/counts.def"
#undef LOAD_DURATIONS
    if (result == 0)
        result = add_tls(&object, report->run->plan, outcome);
    add_http2(&object, report->run->plan, outcome);
    add_little(&object, d);
    add_cpu(&object, report->run, d);
    add_verdict(&object, &report->verdicts[step]);
    add_slos(&object, report, outcome);
    struct json_writer seconds = json_writer_begin(&object, "seconds", '[');
    for (size_t i = 0; i < outcome->second_count; i++) {
        struct json_writer second = json_writer_begin(&seconds, NULL, '{');
        add_second(&second, &outcome->seconds[i]);
        json_writer_end(&second, '}');
    }
    json_writer_end(&seconds, ']');
    json_writer_end(&object, '}');
    return result;
}

int load_forms_json(const struct load_report *report, FILE *out)
{
    const struct load_run *run = report->run;
    struct json_writer top = json_writer_open(out, '{');
    int result = 0;
    json_writer_add_number(&top, "schema", LOAD_SCHEMA);
    json_writer_add_text(&top, "weir", WEIR_VERSION);
    json_writer_add_text(&top, "command_line", run->command_line ? run->command_line : "");
    json_writer_add_bool(&top, "interrupted", run->interrupted);
    json_writer_add_number(&top, "merged_runs", run->merged);
    json_writer_add_number(&top, "start_skew_ns", run->start_skew_ns);
    json_writer_add_number(&top, "server_cpus", run->server_cpus);
    json_writer_add_bool(&top, "valid", report->conclusion != LOAD_INVALID);
    if (report->slos->count > 0)
        json_writer_add_bool(&top, "slos_met", report->slos_met);
    else
        json_writer_add_null(&top, "slos_met");
    json_writer_add_number(&top, "exit_status", report->conclusion);
    add_plan(&top, run);
    struct json_writer steps = json_writer_begin(&top, "steps", '[');
    for (size_t i = 0; i < run->outcome_count && result == 0; i++)
        result = add_step(&steps, report, i);
    json_writer_end(&steps, ']');
    fputs("}\n", out);
    return result;
}

/* ---- a line for each second ---- */

void load_forms_ndjson(const struct load_report *report, FILE *out)
{
    for (size_t step = 0; step < report->run->outcome_count; step++) {
        const struct load_outcome *outcome = &report->run->outcomes[step];
        for (size_t i = 0; i < outcome->second_count; i++) {
            struct json_writer line = json_writer_open(out, '{');
            json_writer_add_number(&line, "step", step + 1);
            json_writer_add_number(&line, "users", outcome->step.users);
            json_writer_add_number(&line, "second", i);
            json_writer_next(&line, "unix_ns");
            fprintf(out, "%" PRId64, outcome->began_unix_ns + (int64_t)i * 1000000000);
            add_second(&line, &outcome->seconds[i]);
            fputs("}\n", out);
        }
    }
}
