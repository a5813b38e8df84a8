/* SPDX-License-Identifier: MIT
 *
 * The sandbox of the processes that read from the network: workers, and the process of the
 * statistics page. A fault in one of them must not reach the rest of the machine.
 *
 * A process enters the sandbox when its files are open, while it has one thread, before it accepts.
 * Its user and groups have changed before (server/resources.h). Then it gives up, in this order:
 *
 *   capabilities   all of them, also in the bounding set
 *   no_new_privs   no program that it executes gains privileges
 *   Landlock       it reads files in the named folders, and writes none; no TCP connect or bind
 *   seccomp        it makes the system calls of its model only (server/calls.h)
 *
 * `sandbox = off` leaves all of this out. With `on`, the parts that the kernel lacks are left out,
 * and the master logs which. With `require`, the server does not start without them.
 */
#pragma once

#include "config/config.h"

#include <sys/types.h>

struct stats_writer;

enum { SERVER_SANDBOX_TEXT_MAX = 256 };

/* What is in force, and what is not, in words. */
struct server_sandbox {
    char in_force[SERVER_SANDBOX_TEXT_MAX]; /* "landlock 7, no_new_privs, user www-data" */
    char missing[SERVER_SANDBOX_TEXT_MAX];  /* empty: nothing */
};

struct session_shared;

/* A worker that is to be confined. */
struct server_sandbox_worker {
    const struct config *config;
    const struct session_shared *sites; /* opened */
    unsigned calls; /* server/calls.h: the groups of system calls that it makes */
    pid_t master;
    const struct stats_writer *totals; /* counts refused calls; borrowed until the process ends */
};

/* The first step of a process that is confined later, before it changes its user: it empties its
 * bounding set of capabilities. `wish` is the value of the setting. 0, or -errno after a report in
 * the error log. */
MUST_USE int server_sandbox_begin(const char *wish);

/* Confines this process, a worker. 0, or -errno after a report in the error log; then
 * the process ends. */
MUST_USE int server_sandbox_confine_worker(const struct server_sandbox_worker *worker,
                                           struct server_sandbox *ret_sandbox);

/* Confines this process, which serves the statistics page and reads /proc. `wish` is the value of
 * the setting. Otherwise the same. */
MUST_USE int server_sandbox_confine_page(const char *wish, pid_t master);

/* The master, which never reads from the network, keeps the capabilities that `config` needs, and
 * gets no others by a program that it executes (an upgrade). Does nothing with `sandbox = off`. A
 * failure is a warning in the error log. */
void server_sandbox_confine_master(const struct config *config);

/* In the master: a worker has reported what is missing. Logs it once for each `sandbox`. */
void server_sandbox_report(struct server_sandbox *sandbox, const char *missing);

/* Describes what this machine offers to a worker. Restricts nothing. */
void server_sandbox_describe_machine(struct server_sandbox *ret_sandbox);
