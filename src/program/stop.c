/* SPDX-License-Identifier: MIT
 *
 * `weir stop`: stops a running server, and waits until its process has ended, whatever the
 * server answers.
 */
#include "program/command.h"
#include "program/configuration.h"
#include "program/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A server that has closed the connection ends soon after. */
enum { END_WAIT_MS = 10000 };

struct stop_options {
    const char *control; /* or NULL */
    bool now;
    struct option_list pid;
};

static const struct option stop_rows[] = {
    { "control", 0, "PATH", PROGRAM_CONTROL_SENTENCE, OPTION_TEXT,
      OPTION_INTO(stop_options, control) },
    { "now", 0, NULL, "stop at once, and cut off answers under way", OPTION_PRESENT,
      OPTION_INTO(stop_options, now) },
    { .name = NULL },
};

static const struct option_group stop_groups[] = {
    { .title = "Options", .options = stop_rows },
    { .options = option_answers },
    { .options = NULL },
};

static bool wait_for_process_end(int pid_fd)
{
    struct pollfd end = { .fd = pid_fd, .events = POLLIN };
    int ready;
    do {
        ready = poll(&end, 1, END_WAIT_MS);
    } while (ready < 0 && errno == EINTR);
    return ready == 1;
}

static int run_stop(void *given, const char *const *words)
{
    (void)words;
    const struct stop_options *options = given;
    struct program_master master;
    int status = program_control_find("stop", options->control,
                                      program_command_argument(&options->pid), &master);
    if (status != PROGRAM_OK)
        return status;
    int pid_fd = (int)syscall(SYS_pidfd_open, master.pid, 0);
    enum program_control_answer answer =
        program_control_ask(&master, options->now ? "stop now" : "stop");
    bool ended = answer != PROGRAM_CONTROL_FAILED && (pid_fd < 0 || wait_for_process_end(pid_fd));
    if (pid_fd >= 0)
        close(pid_fd);
    if (ended)
        printf("weir: process %d has stopped\n", (int)master.pid);
    else
        fprintf(stderr,
                "weir: process %d has not stopped; see its error log, or end it with "
                "weir stop --now\n",
                (int)master.pid);
    return ended ? PROGRAM_OK : PROGRAM_FAILED;
}

const struct program_command program_stop = {
    .options = { .name = "stop",
                 .groups = stop_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct stop_options, pid),
                 .arguments_most = 1 },
    .brief = "[PID]",
    .usage = "[--now] [--control PATH] [PID]",
    .sentence = "stop a running server",
    .text = "After `drain-delay` the server accepts no new connections. Answers under way get\n"
            "`drain-timeout` to finish. The command returns when the server has ended.\n"
            "\n"
            "Without PID it is the one server that this user runs. Exit status: 0 when the\n"
            "server has stopped, 1 when it has not, 2 when the command line is wrong or\n"
            "several servers run.\n"
            "\n"
            "Examples:\n"
            "  weir stop                            the server that I run\n"
            "  weir stop --now                      without waiting for clients\n"
            "  weir stop 4711                       the one with this process id\n",
    .size = sizeof(struct stop_options),
    .run = run_stop,
};
