/* SPDX-License-Identifier: MIT
 *
 * `weir top`: finds a server's segment, and shows it in the terminal as it changes.
 */
#include "base/duration.h"
#include "base/span.h"
#include "os/clock.h"
#include "program/command.h"
#include "program/instance.h"
#include "program/options.h"
#include "top/state.h"
#include "top/watch.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which one is watched. */
struct watched {
    struct stats_instance instance;
    bool any; /* another when it has ended */
    uint64_t searched_ns;
};

/* There is no point in a search for each of ten readings a second. */
static struct stats_snapshot *take(void *context)
{
    struct watched *watched = context;
    char why[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(watched->instance.name, why);
    if (!snapshot && stats_instances_follow(&watched->instance))
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

/* Ends as whoever sent the signal expects it: by it. */
static int end_by(int number)
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

static int watch(struct watched *watched, struct stats_snapshot *first, uint64_t interval_ns)
{
    struct top_source source = { .take = take, .context = watched, .waits = watched->any };
    const char *type = getenv("TERM");
    int rc = top_watch(&source, first, interval_ns);
    if (rc > 0)
        return end_by(rc);
    if (rc == -ENOTTY)
        fprintf(stderr, "weir: `weir top` takes keys, and standard input is no terminal\n");
    else if (rc == -ENOENT && type && type[0])
        fprintf(stderr,
                "weir: `weir top` cannot draw on a terminal of type `%s`; try `weir stats`,"
                " or another TERM\n",
                type);
    else if (rc == -ENOENT)
        fprintf(stderr, "weir: TERM does not say what this terminal is; try `weir stats`\n");
    else if (rc < 0)
        fprintf(stderr, "weir: cannot go on: %s\n", strerror(-rc));
    return rc == 0 ? PROGRAM_OK : rc == -ENOTTY ? PROGRAM_USAGE : PROGRAM_FAILED;
}

static int run(const struct program_command *command, const struct program_options *options)
{
    uint64_t interval_ns = DURATION_SECOND;
    if (options->interval &&
        (!duration_parse(span_text(options->interval), &interval_ns) ||
         interval_ns < TOP_INTERVAL_LEAST_NS || interval_ns > TOP_INTERVAL_MOST_NS)) {
        fprintf(stderr, "weir: --interval: `%s` is not a time from 100ms to 60s\n",
                options->interval);
        return PROGRAM_USAGE;
    }
    if (!isatty(STDOUT_FILENO)) {
        fprintf(stderr, "weir: `weir top` draws on a terminal, and standard output is none; "
                        "`weir stats` prints\n");
        return PROGRAM_USAGE;
    }
    struct watched watched = { .any = !options->argument };
    struct stats_snapshot *first;
    int status = program_instance_find(command, options->argument, &first, &watched.instance);
    if (!first)
        return status;
    (void)setlocale(LC_CTYPE, ""); /* what cannot be written is told by another character */
    return watch(&watched, first, interval_ns);
}

int program_top(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, run);
}
