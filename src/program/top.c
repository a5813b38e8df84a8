/* SPDX-License-Identifier: MIT
 *
 * `weir top`: finds the segment of a server, and shows it in the terminal as it changes.
 */
#include "base/duration.h"
#include "base/span.h"
#include "os/clock.h"
#include "program/command.h"
#include "program/configuration.h"
#include "program/instance.h"
#include "top/state.h"
#include "top/watch.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct top_options {
    uint64_t interval_ns;
    struct option_list pid;
};

static const struct option top_rows[] = {
    { "interval", 0, "TIME", "time between readings, 100ms to 60s (default 1s)", OPTION_TIME,
      OPTION_INTO(top_options, interval_ns), TOP_INTERVAL_LEAST_NS, TOP_INTERVAL_MOST_NS },
    { .name = NULL },
};

static const struct option_group top_groups[] = {
    { .title = "Options", .options = top_rows },
    { .options = option_answers },
    { .options = NULL },
};

/* The server that is watched. */
struct watched {
    struct stats_instance instance;
    bool any;             /* when it has ended, another server is searched for */
    uint64_t searched_ns; /* the time of the last search */
};

/* A search opens every segment of the user, so it runs at most once a second. */
static struct stats_snapshot *take_or_search(void *context)
{
    struct watched *watched = context;
    char why[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(watched->instance.name, why);
    if (!snapshot && stats_snapshot_follow_instance(&watched->instance))
        snapshot = stats_snapshot_take(watched->instance.name, why);
    uint64_t now_ns = os_clock_now_ns();
    if ((snapshot && snapshot->running) || !watched->any ||
        now_ns < watched->searched_ns + DURATION_SECOND)
        return snapshot;
    watched->searched_ns = now_ns;
    struct stats_snapshot *other = program_instance_newest(&watched->instance);
    if (!other)
        return snapshot;
    stats_snapshot_free(snapshot);
    return other;
}

/* Ends the process by the signal, so that the sender sees that status. */
static int end_by_signal(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    struct sigaction usual = { .sa_handler = SIG_DFL };
    (void)sigaction(number, &usual, NULL);
    (void)raise(number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return PROGRAM_FAILED;
}

static int watch_server(struct watched *watched, struct stats_snapshot *first, uint64_t interval_ns)
{
    struct top_source source = { .take = take_or_search,
                                 .context = watched,
                                 .waits = watched->any };
    const char *type = getenv("TERM");
    int rc = top_watch(&source, first, interval_ns);
    if (rc > 0)
        return end_by_signal(rc);
    if (rc == -ENOTTY)
        fprintf(stderr, "weir: `weir top` reads keys, and standard input is no terminal\n");
    else if (rc == -ENOENT && type && type[0])
        fprintf(stderr,
                "weir: `weir top` cannot draw on a terminal of type `%s`; try `weir stats`,"
                " or another TERM\n",
                type);
    else if (rc == -ENOENT)
        fprintf(stderr, "weir: TERM does not say what this terminal is; try `weir stats`\n");
    else if (rc < 0)
        fprintf(stderr, "weir: cannot continue: %s\n", strerror(-rc));
    return rc == 0 ? PROGRAM_OK : rc == -ENOTTY ? PROGRAM_USAGE : PROGRAM_FAILED;
}

static int run_top(void *given, const char *const *words)
{
    (void)words;
    const struct top_options *options = given;
    const char *pid = program_command_argument(&options->pid);
    if (!isatty(STDOUT_FILENO)) {
        fprintf(stderr, "weir: `weir top` draws on a terminal, and standard output is none; "
                        "`weir stats` prints\n");
        return PROGRAM_USAGE;
    }
    struct watched watched = { .any = !pid };
    struct stats_snapshot *first;
    enum program_instance_found found =
        program_instance_find("top", pid, &first, &watched.instance);
    if (!first)
        return program_instance_status(found);
    (void)setlocale(LC_CTYPE, ""); /* what the terminal cannot show is replaced */
    return watch_server(&watched, first, options->interval_ns);
}

const struct program_command program_top = {
    .options = { .name = "top",
                 .groups = top_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct top_options, pid),
                 .arguments_most = 1 },
    .brief = "[PID]",
    .usage = "[--interval TIME] [PID]",
    .sentence = "watch a running server in the terminal",
    .text = "Rates, percentiles, connections, cache, queue and workers, over time and since\n"
            "the last reading. Each counter is explained where it is selected. `?` lists the\n"
            "keys, `q` quits. As with `weir stats`, the server takes no part.\n"
            "\n"
            "Without PID it is the one server that this user runs; when it ends, the next one\n"
            "is shown. Exit status: 1 when there is nothing to read, or the terminal cannot\n"
            "be drawn on; 2 when standard input or output is no terminal, the command line\n"
            "is wrong, or several servers run.\n"
            "\n"
            "NO_COLOR turns colours off. Without a UTF-8 locale the screen is plain ASCII.\n"
            "\n"
            "Examples:\n"
            "  weir top                             the server that I run\n"
            "  weir top --interval 100ms 4711       the one with this process id, often\n",
    .size = sizeof(struct top_options),
    .defaults = &(const struct top_options){ .interval_ns = DURATION_SECOND },
    .run = run_top,
};
