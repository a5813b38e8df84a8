/* SPDX-License-Identifier: MIT
 *
 * A report as tables that other programs read: CSV (RFC 4180, with LF), and the
 * percentile distribution that HdrHistogram's tools write and plot.
 */
#include "load/forms.h"

#include <inttypes.h>

/* ---- CSV ---- */

static void print_csv_head(FILE *out)
{
    fputs("step,users,rate_per_second,measured_seconds,requests,answers,errors,"
          "throughput_per_second,answers_per_second,failed_share,mean_ns,sd_ns,min_ns",
          out);
    for (unsigned i = 0; i < LOAD_SHOWN; i++)
        fprintf(out, ",%s_ns", load_shown[i].name);
    fputs(",max_ns,intended_mean_ns,intended_p99_ns,intended_max_ns,connect_mean_ns,"
          "first_byte_mean_ns,1xx,2xx,3xx,4xx,5xx,received_bytes,body_bytes,"
          "residual_share,longest_gap_ns,lag_p99_ns,generator_cpu_ns_per_answer,"
          "generator_busiest_share,server_cpu_ns_per_answer,server_cores_used,valid,"
          "handshakes_full,handshakes_resumed,handshakes_failed,handshake_mean_ns,"
          "handshake_p50_ns,handshake_p99_ns,protocol,streams,interrupted\n",
          out);
}

/* The cell is empty when the answers are too few. */
static void print_quantile(const struct load_durations *durations, double part, FILE *out)
{
    fputc(',', out);
    if (load_trust_carries(durations->count, part))
        fprintf(out, "%" PRIu64, load_durations_quantile_ns(durations, part));
}

static void print_measure(bool known, double value, FILE *out)
{
    fputc(',', out);
    if (known)
        fprintf(out, "%.9g", value);
}

static void print_times(const struct load_outcome *outcome, FILE *out)
{
    const struct load_durations *response = &outcome->response;
    const struct load_durations *intended = &outcome->intended;
    fprintf(out, ",%.9g,%.9g,%" PRIu64, load_durations_mean_ns(response),
            load_durations_deviation_ns(response), response->least_ns);
    for (unsigned i = 0; i < LOAD_SHOWN; i++)
        print_quantile(response, load_shown[i].part, out);
    fprintf(out, ",%" PRIu64, response->most_ns);
    print_measure(intended->count > 0, load_durations_mean_ns(intended), out);
    print_quantile(intended, 0.99, out);
    print_measure(intended->count > 0, (double)intended->most_ns, out);
    print_measure(outcome->connect.count > 0, load_durations_mean_ns(&outcome->connect), out);
    print_measure(outcome->first_byte.count > 0, load_durations_mean_ns(&outcome->first_byte), out);
}

static void print_handshakes(const struct load_outcome *outcome, FILE *out)
{
    const struct load_durations *handshake = &outcome->handshake;
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, outcome->handshakes_full,
            outcome->handshakes_resumed, outcome->handshakes_failed);
    print_measure(handshake->count > 0, load_durations_mean_ns(handshake), out);
    print_quantile(handshake, 0.5, out);
    print_quantile(handshake, 0.99, out);
}

/* The streams of a connection, or its pipelined requests. */
static void print_protocol(const struct load_plan *plan, FILE *out)
{
    fprintf(out, ",%s,%u", load_result_protocols[plan->http2], plan->pipeline);
}

static void print_csv_row(const struct load_report *report, size_t step, FILE *out)
{
    const struct load_outcome *outcome = &report->run->outcomes[step];
    const struct load_derived *d = &report->derived[step];
    uint64_t classes[5];
    load_forms_classes(outcome, classes);
    fprintf(out, "%zu,%u,%.9g,%.9g,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.9g,%.9g,%.9g", step + 1,
            outcome->step.users, outcome->step.rate, d->seconds, outcome->requests,
            outcome->answers, d->errors, d->throughput_per_s, d->answers_per_s, d->failed_share);
    print_times(outcome, out);
    for (unsigned i = 0; i < 5; i++)
        fprintf(out, ",%" PRIu64, classes[i]);
    fprintf(out, ",%" PRIu64 ",%" PRIu64, outcome->received_bytes, outcome->body_bytes);
    print_measure(d->little, d->hidden_share, out);
    fprintf(out, ",%" PRIu64, outcome->longest_gap_ns);
    print_quantile(&outcome->lag, 0.99, out);
    print_measure(outcome->answers > 0, d->generator_cost_ns, out);
    print_measure(true, d->busiest_share, out);
    print_measure(d->server, d->demand_ns, out);
    print_measure(d->server, d->server_cores, out);
    fprintf(out, ",%s", report->verdicts[step].invalid ? "false" : "true");
    print_handshakes(outcome, out);
    print_protocol(report->run->plan, out);
    fprintf(out, ",%s\n", outcome->interrupted ? "true" : "false");
}

void load_forms_csv(const struct load_report *report, FILE *out)
{
    print_csv_head(out);
    for (size_t i = 0; i < report->run->outcome_count; i++)
        print_csv_row(report, i, out);
}

/* ---- HdrHistogram's distribution ---- */

/* Prints a row for each part, up to the greatest value. As HdrHistogram's tools do, each group of
 * five parts halves the distance to 1. */
static void print_distribution(const struct load_durations *durations, FILE *out)
{
    double part = 0, left = 1;
    for (;;) {
        uint64_t ns = load_durations_quantile_ns(durations, part);
        uint64_t count =
            histogram_at_most(durations->bucket, histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS),
                              histogram_high(histogram_index(ns, LOAD_BITS), LOAD_BITS), LOAD_BITS);
        if (count >= durations->count)
            break;
        fprintf(out, "%12.6f %2.12f %10" PRIu64 " %14.2f\n", (double)ns / 1e6, part, count,
                1 / (1 - part));
        part += left / 10;
        if (1 - part < left / 2 + left / 100)
            left /= 2;
    }
    fprintf(out, "%12.6f %2.12f %10" PRIu64 "\n", (double)durations->most_ns / 1e6, 1.0,
            durations->count);
}

void load_forms_hgrm(const struct load_report *report, size_t step, FILE *out)
{
    const struct load_durations *durations =
        load_trust_response(report->run, &report->run->outcomes[step]);
    size_t buckets = histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS);
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    if (durations->count > 0)
        print_distribution(durations, out);
    fprintf(out, "#[Mean    = %12.6f, StdDeviation   = %12.6f]\n",
            load_durations_mean_ns(durations) / 1e6, load_durations_deviation_ns(durations) / 1e6);
    fprintf(out, "#[Max     = %12.6f, Total count    = %12" PRIu64 "]\n",
            (double)durations->most_ns / 1e6, durations->count);
    fprintf(out, "#[Buckets = %12zu, SubBuckets     = %12u]\n", buckets >> LOAD_BITS,
            2u << LOAD_BITS);
}
