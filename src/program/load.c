/* SPDX-License-Identifier: MIT
 *
 * `weir load`: reads the words, makes the load, shows meanwhile how it goes, and
 * prints what came of it.
 */
#include "program/load.h"

#include "base/buf.h"
#include "base/nearest.h"
#include "load/engine.h"
#include "load/feasible.h"
#include "load/figure.h"
#include "load/parse.h"
#include "load/print.h"
#include "os/process.h"
#include "os/signal.h"
#include "program/command.h"
#include "program/loadmerge.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- how the result is shown ---- */

struct outputs {
    struct load_print how;
    struct load_slos slos;
    bool quiet;
};

static bool take_form(struct outputs *outputs, enum load_form form, struct load_refusal *refusal)
{
    if (outputs->how.form != LOAD_FORM_TEXT && outputs->how.form != form)
        return load_refuse(refusal, "--json and --csv are two answers; choose one");
    outputs->how.form = form;
    return true;
}

static bool take_json(void *context, const char *value, struct load_refusal *refusal)
{
    (void)value;
    return take_form(context, LOAD_FORM_JSON, refusal);
}

static bool take_csv(void *context, const char *value, struct load_refusal *refusal)
{
    (void)value;
    return take_form(context, LOAD_FORM_CSV, refusal);
}

static bool take_hgrm(void *context, const char *value, struct load_refusal *refusal)
{
    (void)refusal;
    ((struct outputs *)context)->how.hgrm = value;
    return true;
}

static bool take_ndjson(void *context, const char *value, struct load_refusal *refusal)
{
    (void)refusal;
    ((struct outputs *)context)->how.ndjson = value;
    return true;
}

static bool take_slo(void *context, const char *value, struct load_refusal *refusal)
{
    char why[LOAD_SLO_WHY_MAX];
    return load_slos_parse(value, &((struct outputs *)context)->slos, why) ||
           load_refuse(refusal, "--slo: %s", why);
}

static bool take_quiet(void *context, const char *value, struct load_refusal *refusal)
{
    (void)value;
    (void)refusal;
    ((struct outputs *)context)->quiet = true;
    return true;
}

const struct load_option program_load_outputs[] = {
    { "json", 0, NULL, "print one JSON object (docs/load-json.md)", take_json },
    { "csv", 0, NULL, "print a row for each step", take_csv },
    { "hgrm", 0, "FILE", "write HdrHistogram's percentile distribution", take_hgrm },
    { "ndjson", 0, "FILE", "write a line of JSON for each second", take_ndjson },
    { "slo", 0, "LIST", "objectives: 'p99<10ms,errors<0.1%,throughput>1000,mean<=2ms'", take_slo },
    { "quiet", 'q', NULL, "show nothing on the terminal meanwhile", take_quiet },
    { NULL, 0, NULL, NULL, NULL },
};

/* ---- meanwhile ---- */

static void tell(void *context, const struct load_progress *progress)
{
    (void)context;
    const struct load_second *second = &progress->latest;
    char load[64], left[32] = "";
    if (progress->load.rate > 0)
        (void)snprintf(load, sizeof(load), "%.4g/s asked", progress->load.rate);
    else
        (void)snprintf(load, sizeof(load), "%u users", progress->load.users);
    if (progress->left_ns != UINT64_MAX)
        (void)snprintf(left, sizeof(left), "  %llu s left",
                       (unsigned long long)((progress->left_ns + 999999999) / 1000000000));
    fprintf(stderr, "\r\033[K%s %zu/%zu  %s  %llu/s  p50 %s  p99 %s  %llu errors%s",
            progress->warming ? "warm-up" : "step", progress->step + 1, progress->step_count, load,
            (unsigned long long)second->answers, load_figure_time((double)second->p50_ns).text,
            load_figure_time((double)second->p99_ns).text, (unsigned long long)progress->errors,
            left);
}

/* ---- all of it ---- */

/* What people know from other generators, and what it is here. */
static const struct {
    const char *word, *cure;
} elsewhere[] = {
    { "-c", "each user has a connection: --users N" },
    { "--connections", "each user has a connection: --users N" },
    { "--concurrency", "each user has a connection: --users N" },
    { "--clients", "each user has a connection: --users N" },
    { "-R", "requests a second are asked for with --rate R" },
    { "--qps", "requests a second are asked for with --rate R" },
    { "-k", "connections are kept, unless --no-keepalive says else" },
    { "--keepalive", "connections are kept, unless --no-keepalive says else" },
    { "--latency", "percentiles are always told" },
    { "-D", "it is --duration 10s" },
    { "-z", "it is --duration 10s" },
    { "-s", "there are no scripts; several URLs come from --urls FILE" },
    { "-m", "it is --method METHOD" },
    { "-T", "limits are --connect-timeout, --first-byte-timeout and --response-timeout" },
    { "--timeout", "limits are --connect-timeout, --first-byte-timeout and --response-timeout" },
    { "--body", "the body is --data TEXT or --data-file FILE" },
    { "--http2", "HTTP/2 is not spoken yet, HTTP/1.1 is" },
    { "--h2", "HTTP/2 is not spoken yet, HTTP/1.1 is" },
    { "--h1", "HTTP/1.1 is what is spoken" },
    { "--insecure", "https is not spoken yet" },
};

static int refuse(const struct load_refusal *refusal)
{
    struct nearest nearest = { 0 };
    for (size_t i = 0; refusal->unknown && i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        size_t len = strlen(elsewhere[i].word);
        const char *end = refusal->unknown + len;
        bool is_it = strncmp(refusal->unknown, elsewhere[i].word, len) == 0;
        if (!is_it || (len > 2 && *end != '\0' && *end != '='))
            continue;
        fprintf(stderr, "weir: there is no %s; %s\n", elsewhere[i].word, elsewhere[i].cure);
        return PROGRAM_USAGE;
    }
    if (refusal->unknown) {
        const char *name = refusal->unknown + strspn(refusal->unknown, "-");
        nearest = nearest_to(span_of(name, strcspn(name, "=")));
        for (const struct load_option *option = load_option_table; option->name; option++)
            nearest_offer(&nearest, option->name);
        for (const struct load_option *option = program_load_outputs; option->name; option++)
            nearest_offer(&nearest, option->name);
    }
    if (nearest.best)
        fprintf(stderr, "weir: %s; did you mean --%s?\n", refusal->text, nearest.best);
    else
        fprintf(stderr, "weir: %s%s\n", refusal->text,
                refusal->unknown ? "; `weir help load` lists them" : "");
    return PROGRAM_USAGE;
}

static char *join(const char *const *words)
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

static int fail(const char *what, int error)
{
    fprintf(stderr, "weir: %s: %s\n", what, strerror(-error));
    return PROGRAM_FAILED;
}

static int show(const struct load_run *run, const struct outputs *outputs)
{
    struct load_report report;
    const char *path = "the result";
    if (run->outcome_count == 0) {
        fprintf(stderr, "weir: it ended before anything was measured\n");
        return PROGRAM_FAILED;
    }
    int rc = load_report_init(&report, run, &outputs->slos);
    if (rc == 0)
        rc = load_print(&report, &outputs->how, stdout, &path);
    int status = rc < 0 ? fail(path, rc) : (int)report.conclusion;
    load_report_done(&report);
    return status;
}

static int make_load(const struct load_plan *plan, const struct outputs *outputs,
                     const char *const *words)
{
    static const int signals[] = { SIGINT, SIGTERM };
    bool shown = !outputs->quiet && isatty(STDERR_FILENO);
    struct load_engine engine = { .signal_fd = os_signal_open(signals, 2),
                                  .tell = shown ? tell : NULL };
    struct load_run run;
    if (engine.signal_fd < 0)
        return fail("signals", engine.signal_fd);
    (void)os_process_raise_files();
    int rc = load_engine_run(plan, &engine, &run);
    if (shown)
        fprintf(stderr, "\r\033[K");
    char *line = join(words);
    run.command_line = line ? line : "";
    int status = PROGRAM_FAILED;
    if (rc == -ENXIO)
        fprintf(stderr, "weir: --cpus: this process may not run on all of them\n");
    else
        status = rc < 0 ? fail("the load cannot be made", rc) : show(&run, outputs);
    load_engine_done(&run);
    free(line);
    close(engine.signal_fd);
    return status;
}

static bool wants_help(const char *const *words)
{
    for (; *words; words++)
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0)
            return true;
    return false;
}

int program_load(const struct program_command *command, const char *const *words)
{
    if (words[0] && strcmp(words[0], "merge") == 0)
        return program_load_merge(words + 1);
    if (wants_help(words)) {
        program_help_print(command, stdout);
        return PROGRAM_OK;
    }
    if (words[0] && (strcmp(words[0], "--version") == 0 || strcmp(words[0], "-V") == 0)) {
        printf("weir %s\n", WEIR_VERSION);
        return PROGRAM_OK;
    }
    struct load_plan plan;
    struct load_refusal refusal;
    struct outputs outputs = { 0 };
    const struct load_option_set more = { program_load_outputs, &outputs };
    bool good = load_parse(words, &more, &plan, &refusal) && load_feasible(&plan, &refusal);
    int status = good ? make_load(&plan, &outputs, words) : refuse(&refusal);
    load_parse_done(&plan);
    return status;
}
