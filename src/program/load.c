/* SPDX-License-Identifier: MIT
 *
 * `weir load`: reads the options, runs the load, shows the progress on a terminal, and prints the
 * result.
 */
#include "base/buf.h"
#include "load/engine.h"
#include "load/format.h"
#include "load/option.h"
#include "load/plan.h"
#include "load/probe.h"
#include "load/report.h"
#include "os/process.h"
#include "os/signal.h"
#include "program/command.h"
#include "program/output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct load_options {
    struct load_reading reading;
    struct program_output output;
    bool quiet;
};

static const struct option load_rows[] = {
    { "quiet", 'q', NULL, "show no progress on the terminal", OPTION_PRESENT,
      OPTION_INTO(load_options, quiet) },
    { .name = NULL },
};

static const struct option_group load_groups[] = {
    { .title = "The load",
      .options = load_option_table,
      .offset = offsetof(struct load_options, reading) },
    { .title = "The result",
      .options = program_output_options,
      .offset = offsetof(struct load_options, output) },
    { .options = load_rows },
    { .title = "Options", .options = option_answers },
    { .options = NULL },
};

/* Words that people know from other generators. */
static const struct option_elsewhere elsewhere[] = {
    { "-c", "each user has a connection: --users N" },
    { "--connections", "each user has a connection: --users N" },
    { "--concurrency", "each user has a connection: --users N" },
    { "--clients", "each user has a connection: --users N" },
    { "-R", "the request rate is --rate R" },
    { "--qps", "the request rate is --rate R" },
    { "-k", "connections are kept open, unless --no-keepalive is given; --insecure accepts any "
            "certificate" },
    { "--keepalive", "connections are kept open, unless --no-keepalive is given" },
    { "--latency", "percentiles are always reported" },
    { "-D", "the time is --duration 10s" },
    { "-z", "the time is --duration 10s" },
    { "-s", "weir load has no scripts; several URLs come from --urls FILE" },
    { "-m", "the method is --method METHOD" },
    { "-T", "the limits are --connect-timeout, --first-byte-timeout and --response-timeout" },
    { "--timeout",
      "the limits are --connect-timeout, --first-byte-timeout and --response-timeout" },
    { "--body", "the body is --data TEXT or --data-file FILE" },
    { "--h2", "HTTP/2 is --http2" },
    { "--h1", "weir load speaks HTTP/1.1, unless --http2 is given" },
    { "--http3", "weir load speaks HTTP/1.1 and, with --http2, HTTP/2" },
    { "--streams", "the number of streams is --pipeline N" },
    { "--tls-max", "weir load takes the newest version of TLS that the server has" },
    { NULL, NULL },
};

/* ---- progress ---- */

static void show_progress(void *context, const struct load_progress *progress)
{
    (void)context;
    const struct load_second *second = &progress->latest;
    char load[64], left[32] = "";
    if (progress->load.rate > 0)
        (void)snprintf(load, sizeof(load), "rate %.4g/s", progress->load.rate);
    else
        (void)snprintf(load, sizeof(load), "%u users", progress->load.users);
    if (progress->left_ns != UINT64_MAX)
        (void)snprintf(left, sizeof(left), "  %llu s left",
                       (unsigned long long)((progress->left_ns + 999999999) / 1000000000));
    fprintf(stderr, "\r\033[K%s %zu/%zu  %s  %llu/s  p50 %s  p99 %s  %llu errors%s",
            progress->warming ? "warm-up" : "step", progress->step + 1, progress->step_count, load,
            (unsigned long long)second->answers, load_format_time((double)second->p50_ns).text,
            load_format_time((double)second->p99_ns).text, (unsigned long long)progress->errors,
            left);
}

/* ---- the run ---- */

/* Gives the command line as one text; NULL: out of memory. */
static char *join_words(const char *const *words)
{
    size_t len = sizeof("weir load");
    for (const char *const *word = words; *word; word++)
        len += strlen(*word) + 1;
    char *joined = malloc(len);
    if (!joined)
        return NULL;
    struct buf out = buf_over(joined, len);
    buf_add(&out, SPAN("weir load"));
    for (const char *const *word = words; *word; word++) {
        buf_add_char(&out, ' ');
        buf_add(&out, span_text(*word));
    }
    buf_add_char(&out, '\0');
    return joined;
}

static int report_error(const char *what, int error)
{
    fprintf(stderr, "weir: %s: %s\n", what, strerror(-error));
    return PROGRAM_FAILED;
}

/* A hangup ends the run unless nohup(1) has had it ignored. */
static int open_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction hangup = { .sa_handler = SIG_DFL };
    (void)sigaction(SIGHUP, NULL, &hangup); /* cannot fail */
    return os_signal_open(signals, hangup.sa_handler == SIG_IGN ? 2 : 3);
}

static int make_load(const struct load_options *options, const char *const *words)
{
    bool shown = !options->quiet && isatty(STDERR_FILENO);
    struct load_engine engine = { .signal_fd = open_signals(),
                                  .progress = shown ? show_progress : NULL };
    struct load_run run;
    if (engine.signal_fd < 0)
        return report_error("signals", engine.signal_fd);
    os_process_reserve_files(os_process_raise_files());
    int rc = load_engine_run(&options->reading.plan, &engine, &run);
    if (shown)
        fprintf(stderr, "\r\033[K");
    char *line = join_words(words);
    run.command_line = line ? line : "";
    int status = PROGRAM_FAILED;
    if (rc == -ENXIO)
        fprintf(stderr, "weir: --cpus: this process may not run on all of these CPUs\n");
    else if (rc < 0)
        status = report_error("the load cannot be made", rc);
    else if (run.outcome_count == 0)
        fprintf(stderr, "weir: the run ended before anything was measured\n");
    else
        status = program_output_print(&options->output, &run, "");
    load_engine_done(&run);
    free(line);
    close(engine.signal_fd);
    return status;
}

/* ---- the command ---- */

static bool take_url(void *into, const char *url, struct option_refusal *refusal)
{
    return load_reading_url(&((struct load_options *)into)->reading, url, refusal);
}

static bool begin_load(void *options)
{
    return load_reading_begin(&((struct load_options *)options)->reading);
}

static void end_load(void *options)
{
    load_reading_done(&((struct load_options *)options)->reading);
}

static int run_load(void *given, const char *const *words)
{
    struct load_options *options = given;
    struct option_refusal refusal;
    if (!program_output_check(&options->output, ""))
        return PROGRAM_USAGE;
    int status = PROGRAM_USAGE;
    if (load_reading_finish(&options->reading, &refusal) &&
        load_plan_check_resources(&options->reading.plan, &refusal)) {
        if (load_probe_servers(&options->reading.plan, &refusal))
            return make_load(options, words);
        status = LOAD_INVALID; /* as a run without any answer */
    }
    fprintf(stderr, "weir: %s\n", refusal.text);
    return status;
}

const struct program_command program_load = {
    .options = { .name = "load",
                 .groups = load_groups,
                 .elsewhere = elsewhere,
                 .take_argument = take_url },
    .brief = "URL...",
    .usage = "URL... [OPTION]...",
    .sentence = "put a server under load, and measure it",
    .text = "Emulated users, each with its own connection. A user sends a request, waits for\n"
            "the whole answer, thinks, and sends the next request. Response times are\n"
            "reported as measured, without correction for coordinated omission. With --rate\n"
            "requests start at their time, whether or not earlier ones are answered, and\n"
            "response times count from that time.\n"
            "\n"
            "A URL is http[s]://HOST[:PORT]/PATH or unix:/SOCKET:/PATH; of several, each\n"
            "request draws one. Ctrl-C ends the run, and prints what was measured. `weir load\n"
            "merge FILE...` makes one result of those of several machines.\n"
            "\n"
            "With https a handshake before the run verifies each server's certificate. The\n"
            "handshakes of the run are counted and timed apart from responses. A user resumes\n"
            "its TLS session on later connections, since it stands for one client that comes\n"
            "back. With `--tls full --no-keepalive` each request is that of a new client.\n"
            "\n"
            "Exit status: 0; 1 when the run failed; 2 when the command line is wrong; 3 when\n"
            "an objective of --slo was missed; 4 when the result is invalid: more than 1 % of\n"
            "the requests failed, or it describes the generator rather than the server, or\n"
            "the server's certificate is not trusted. `--slo 'errors<5%'` lets more fail.\n"
            "\n"
            "Examples:\n"
            "  weir load http://127.0.0.1:8080/               10 users, 10 seconds\n"
            "  weir load URL --users 100 --think exp:1s       a hundred users who read\n"
            "  weir load URL --steps 1,2,5,10..100:10         where does it saturate?\n"
            "  weir load URL --rate 500 --slo 'p99<50ms'      are 500 a second fast enough?\n"
            "  weir load URL -u 64 -n 100000 --json           100,000 requests, as JSON\n",
    .size = sizeof(struct load_options),
    .begin = begin_load,
    .end = end_load,
    .run = run_load,
};
