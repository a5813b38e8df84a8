/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: finds the segment of a server, takes snapshots, and prints them: all numbers, or
 * what changes, or one line for monitoring. The server takes no part.
 */
#include "base/duration.h"
#include "program/command.h"
#include "program/configuration.h"
#include "program/instance.h"
#include "view/check.h"
#include "view/view.h"

#include <poll.h>
#include <unistd.h>

/* Shares of CPU time need two snapshots, this far apart. */
enum { APART_MS = 200 };

#define INTERVAL_LEAST_NS (100 * DURATION_MS)
#define INTERVAL_MOST_NS  (3600 * DURATION_SECOND)
#define INTERVAL_NS       (2 * DURATION_SECOND) /* unless another one is named */

struct stats_options {
    bool json, prometheus, openmetrics, explain;
    bool diff, watch, check, ignore_warnings, list;
    uint64_t interval_ns; /* 0: INTERVAL_NS */
    struct option_list pid;
};

static const struct option stats_rows[] = {
    { "explain", 0, NULL, "say what each number means", OPTION_PRESENT,
      OPTION_INTO(stats_options, explain) },
    { "list", 0, NULL, "list the servers that run, with their addresses", OPTION_PRESENT,
      OPTION_INTO(stats_options, list) },
    { .name = NULL },
};

static const struct option time_rows[] = {
    { "diff", 0, NULL, "print what changes in an interval, and rates", OPTION_PRESENT,
      OPTION_INTO(stats_options, diff) },
    { "watch", 0, NULL, "print again after each interval", OPTION_PRESENT,
      OPTION_INTO(stats_options, watch) },
    { "interval", 0, "TIME", "the interval, 100ms to 1h (default 2s)", OPTION_TIME,
      OPTION_INTO(stats_options, interval_ns), INTERVAL_LEAST_NS, INTERVAL_MOST_NS },
    { .name = NULL },
};

static const struct option program_rows[] = {
    { "json", 0, NULL, "print one JSON object", OPTION_PRESENT, OPTION_INTO(stats_options, json) },
    { "prometheus", 0, NULL, "print Prometheus's text format", OPTION_PRESENT,
      OPTION_INTO(stats_options, prometheus) },
    { "openmetrics", 0, NULL, "print OpenMetrics 1.0", OPTION_PRESENT,
      OPTION_INTO(stats_options, openmetrics) },
    { "check", 0, NULL, "print one line for Nagios or Icinga; see Exit status", OPTION_PRESENT,
      OPTION_INTO(stats_options, check) },
    { "ignore-warnings", 0, NULL, "with --check: 0 also on a warning", OPTION_PRESENT,
      OPTION_INTO(stats_options, ignore_warnings) },
    { .name = NULL },
};

static const struct option_group stats_groups[] = {
    { .title = "Options", .options = stats_rows },
    { .title = "Over time", .options = time_rows },
    { .title = "For programs", .options = program_rows },
    { .options = option_answers },
    { .options = NULL },
};

/* ---- the options together ---- */

static bool refuse_together(const char *sentence)
{
    fprintf(stderr, "weir: %s\n", sentence);
    return false;
}

static bool check_options(const struct stats_options *o)
{
    int forms = o->json + o->prometheus + o->openmetrics;
    if (forms > 1)
        return refuse_together("--json, --prometheus and --openmetrics are different answers; "
                               "choose one");
    if (o->check && (forms > 0 || o->diff || o->watch || o->explain || o->list))
        return refuse_together("--check prints one line, and takes none of the other forms");
    if (o->list && (forms > 0 || o->diff || o->watch || o->explain || o->pid.count > 0))
        return refuse_together("--list prints a table of servers, and takes no other option and "
                               "no PID");
    if (o->diff && (forms > 0 || o->explain))
        return refuse_together("--diff prints a table of changes; leave out the other form");
    if (o->explain && forms > 0)
        return refuse_together("--explain prints text, and takes none of the forms for programs");
    if (o->interval_ns > 0 && !o->diff && !o->watch)
        return refuse_together("--interval belongs to --diff and --watch");
    if (o->watch && o->prometheus + o->openmetrics > 0)
        return refuse_together("--watch prints tables, or with --json one object a line");
    if (o->ignore_warnings && !o->check)
        return refuse_together("--ignore-warnings belongs to --check");
    return true;
}

static bool is_for_people(const struct stats_options *options)
{
    return !options->json && !options->prometheus && !options->openmetrics;
}

/* ---- readings ---- */

/* The last two readings of a server. */
struct readings {
    struct stats_instance instance;
    unsigned count;
    struct view view[2]; /* number n at n % 2 */
};

static const struct view *newest_of(const struct readings *readings)
{
    return &readings->view[(readings->count + 1) % 2];
}

/* Takes `snapshot`. */
static void add_reading(struct readings *readings, struct stats_snapshot *snapshot)
{
    struct view *view = &readings->view[readings->count % 2];
    if (readings->count >= 2)
        view_done(view);
    view_init(view, snapshot);
    view->before = readings->count > 0 ? newest_of(readings) : NULL;
    readings->count++;
}

/* Waits and reads again. False when the server has no numbers any more. */
static bool read_again(struct readings *readings, uint64_t wait_ns)
{
    char why[STATS_WHY_MAX];
    (void)poll(NULL, 0, (int)(wait_ns / DURATION_MS));
    struct stats_snapshot *snapshot = stats_snapshot_take(readings->instance.name, why);
    if (!snapshot && stats_snapshot_follow_instance(&readings->instance))
        snapshot = stats_snapshot_take(readings->instance.name, why);
    if (snapshot)
        add_reading(readings, snapshot);
    return snapshot != NULL;
}

static void end_readings(struct readings *readings)
{
    for (unsigned i = 0; i < 2 && i < readings->count; i++)
        view_done(&readings->view[i]);
}

/* ---- output ---- */

static void print_view(const struct stats_options *options, const struct view *view)
{
    if (options->diff)
        view_print_difference(view, view->before, stdout);
    else if (options->json)
        view_print_json(view, stdout);
    else if (options->prometheus)
        view_print_prometheus(view, stdout);
    else if (options->openmetrics)
        view_print_openmetrics(view, stdout);
    else
        view_print_text(view, options->explain, stdout);
}

static int report_end(const struct readings *readings)
{
    const int pid = (int)readings->instance.pid;
    if (newest_of(readings)->snapshot->running)
        fprintf(stderr, "weir: process %d has stopped, and its numbers are gone\n", pid);
    else
        fprintf(stderr,
                "weir: process %d has died, and its numbers change no more; `weir stats %d` prints "
                "them\n",
                pid, pid);
    return PROGRAM_FAILED;
}

/* Prints until the server has stopped, or this process is interrupted. A terminal is cleared before
 * each table. */
static int print_repeatedly(const struct stats_options *options, struct readings *readings)
{
    bool clears = is_for_people(options) && isatty(STDOUT_FILENO);
    for (;;) {
        fputs(clears ? "\033[H\033[J" : "", stdout);
        print_view(options, newest_of(readings));
        fputs(clears || !is_for_people(options) ? "" : "\n", stdout);
        if (fflush(stdout) != 0)
            return PROGRAM_FAILED;
        if (!newest_of(readings)->snapshot->running || !read_again(readings, options->interval_ns))
            return report_end(readings);
    }
}

/* Where the line cannot be written, nobody learns that all is well. */
static int end_check(enum view_check_state state)
{
    return fflush(stdout) != 0 && state <= VIEW_CHECK_WARNING ? (int)VIEW_CHECK_UNKNOWN
                                                              : (int)state;
}

/* The tables for people need a second reading: for changes, and for what the workers do now. The
 * forms for programs, which may read often, do without the wait. */
static int print_readings(const struct stats_options *options, struct readings *readings)
{
    bool running = newest_of(readings)->snapshot->running;
    uint64_t wait_ns = options->diff ? options->interval_ns : APART_MS * DURATION_MS;
    if (options->diff && !running)
        return report_end(readings);
    if (is_for_people(options) && running && !read_again(readings, wait_ns) && options->diff)
        return report_end(readings);
    if (options->check) {
        enum view_check_state state = view_check_print(newest_of(readings), stdout);
        return end_check(state == VIEW_CHECK_WARNING && options->ignore_warnings ? VIEW_CHECK_OK
                                                                                 : state);
    }
    if (options->watch)
        return print_repeatedly(options, readings);
    print_view(options, newest_of(readings));
    return PROGRAM_OK;
}

/* Without a server there is nothing to check: it should run. Any other failure tells nothing about
 * the server. */
static int report_unchecked(enum program_instance_found found)
{
    bool absent = found == PROGRAM_INSTANCE_NONE;
    enum view_check_state state = absent ? VIEW_CHECK_CRITICAL : VIEW_CHECK_UNKNOWN;
    view_check_print_problem(state,
                             absent ? "no server runs with statistics"
                                    : "the server cannot be checked; standard error says why",
                             stdout);
    return (int)state;
}

static int run_stats(void *given, const char *const *words)
{
    (void)words;
    struct stats_options *options = given;
    struct readings readings = { 0 };
    struct stats_snapshot *snapshot;
    if (!check_options(options))
        return options->check ? (int)VIEW_CHECK_UNKNOWN : PROGRAM_USAGE;
    if (options->interval_ns == 0)
        options->interval_ns = INTERVAL_NS;
    if (options->list)
        return program_instance_list(stdout) > 0 ? PROGRAM_OK : PROGRAM_FAILED;
    enum program_instance_found found = program_instance_find(
        "stats", program_command_argument(&options->pid), &snapshot, &readings.instance);
    if (!snapshot)
        return options->check ? report_unchecked(found) : program_instance_status(found);
    add_reading(&readings, snapshot);
    int status = print_readings(options, &readings);
    end_readings(&readings);
    return status;
}

const struct program_command program_stats = {
    .options = { .name = "stats",
                 .groups = stats_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct stats_options, pid),
                 .arguments_most = 1 },
    .brief = "[PID]",
    .usage = "[--json|--prometheus|--openmetrics|--check] [--diff] [--watch] [PID]",
    .sentence = "print what a running server has counted",
    .text = "Requests, connections, cache and response times since the server started, in all\n"
            "its workers, those that have ended too. The command reads the shared memory of\n"
            "the server, so it works when the server hangs or was killed.\n"
            "\n"
            "Without PID it is the one server that this user runs. --list names all of them.\n"
            "\n"
            "Exit status: 0 when there are numbers, 1 when there are none or they cannot be\n"
            "read, 2 when several servers run. With --check: 0 OK, 1 WARNING (a verdict\n"
            "warns), 2 CRITICAL (a verdict is `wrong`, or no server serves), 3 UNKNOWN.\n"
            "\n"
            "Examples:\n"
            "  weir stats                           the server that I run\n"
            "  weir stats --explain                 and what each number means\n"
            "  weir stats --diff --interval 10s     what happens in ten seconds\n"
            "  weir stats --json 4711               the one with this process id, as JSON\n",
    .size = sizeof(struct stats_options),
    .run = run_stats,
};
