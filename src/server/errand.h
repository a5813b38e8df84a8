/* SPDX-License-Identifier: MIT
 *
 * A process that does for the master what may wait for a disk. A name or a file of another machine
 * may not answer for minutes, and no signal ends that wait. The master must reload, stop and report
 * meanwhile, so it never waits itself, and never for the end of such a process.
 *
 * A process and not a thread: a thread that waits like this would keep the master from ending.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The name of the process in `ps`. */
#define SERVER_ERRAND_NAME "weir-disk"

/* So many processes that were given up may still wait for a disk, beside one errand. */
enum { SERVER_ERRANDS_LEFT = 3 };

struct server_errand {
    int fd;     /* reads what the process writes, without waiting; -1: nothing reads it */
    pid_t pid;  /* 0: no errand is under way */
    int signal; /* that ended the process of the last errand; 0: none */
    pid_t left[SERVER_ERRANDS_LEFT]; /* processes of earlier errands that were given up; or 0 */
};
#define SERVER_ERRAND_NONE ((struct server_errand){ .fd = -1 })

/* Starts `run` in a copy of this process, which has none of its descriptors but `fd`, logs nothing,
 * and ends with this process. No errand may be under way. 0 or -errno. */
MUST_USE int server_errand_begin(struct server_errand *errand, void (*run)(void *context, int fd),
                                 void *context);

/* Reads one record of `size` bytes, which the process has written at once. 1: read, 0: none yet,
 * -1: there are no more. */
MUST_USE int server_errand_read(struct server_errand *errand, void *record, size_t size);

/* No more is read. The errand is under way until its process ends. */
void server_errand_close(struct server_errand *errand);

/* Gives the errand up and kills its process, which may have to wait for the disk before it ends.
 * The errand is no longer under way, unless SERVER_ERRANDS_LEFT processes wait already. */
void server_errand_give_up(struct server_errand *errand);

/* Whether a process of this errand, or of one that was given up, has not ended. */
bool server_errand_has_process(const struct server_errand *errand);

/* A child has ended with `status` of wait(2). Whether it was a process of this errand, and no
 * worker. */
bool server_errand_reap(struct server_errand *errand, pid_t pid, int status);
