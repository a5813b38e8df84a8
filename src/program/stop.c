/* SPDX-License-Identifier: MIT
 *
 * `weir stop`: has a running server stop, and waits until its process is gone,
 * whatever it says or does not say.
 */
#include "program/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* After the server has let go of the connection it has little left to do. */
enum { GONE_MS = 10000 };

static bool wait_until_gone(int pid_fd)
{
    struct pollfd end = { .fd = pid_fd, .events = POLLIN };
    int ready;
    do {
        ready = poll(&end, 1, GONE_MS);
    } while (ready < 0 && errno == EINTR);
    return ready == 1;
}

static int stop(const struct program_command *command, const struct program_options *options)
{
    struct program_master master;
    int status = program_control_find(command->name, options, &master);
    if (status != PROGRAM_OK)
        return status;
    int pid_fd = (int)syscall(SYS_pidfd_open, master.pid, 0);
    enum program_control_answer answer =
        program_control_ask(&master, options->now ? "stop now" : "stop");
    bool gone = answer != PROGRAM_CONTROL_FAILED && (pid_fd < 0 || wait_until_gone(pid_fd));
    if (pid_fd >= 0)
        close(pid_fd);
    if (gone)
        printf("weir: process %d has stopped\n", (int)master.pid);
    else
        fprintf(stderr,
                "weir: process %d has not stopped; see its error log, or end it with "
                "weir stop --now\n",
                (int)master.pid);
    return gone ? PROGRAM_OK : PROGRAM_FAILED;
}

int program_stop(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, stop);
}
