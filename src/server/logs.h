/* SPDX-License-Identifier: MIT
 *
 * The logs of a configuration. The master alone opens log files, because its workers may have no
 * right to. A worker inherits the descriptors of files, and opens its own sockets before it is
 * confined: it could shut down one that it shares. After SIGUSR1 the master opens each path again
 * and passes the new descriptors through the worker's mailbox (ipc/mailbox.h). A file that cannot
 * be opened again is reported and counted, and its lines go to the old file, so that none is lost.
 *
 * Only the master uses it.
 */
#pragma once

#include "config/config.h"
#include "ipc/mailbox.h"
#include "log/access.h"

struct config_store;

struct server_logs {
    const struct config *config; /* borrowed */
    struct log_layout *layout;   /* of the access log; NULL: `combined` */
    struct log_access_sink access;
    const char *error_log; /* the setting, or `journal` in place of standard error; borrowed */
    int error_fd;          /* the error log, until it is the process's own; or -1 */
};

#define SERVER_LOGS_NONE \
    { \
        .access = { .fd = -1 }, .error_fd = -1 \
    }

/* Opens the logs. 0, or -errno with a sentence in `why`. */
MUST_USE int server_logs_open(struct server_logs *logs, const struct config_store *store, char *why,
                              size_t size);
void server_logs_close(struct server_logs *logs);

/* Whether server_logs_open would refuse what the path of a log names now. Nothing is opened but
 * folders. 0, or -errno with a sentence in `why`. */
MUST_USE int server_logs_judge(const struct config *config, const char *path, char *why,
                               size_t size);

/* Makes the error log the one of this process, if it is open and not in use yet. */
void server_logs_use_error(struct server_logs *logs);

/* In a new process: its error log is no socket that another process has, too. In a new worker,
 * neither is its access log. Warns if such a socket cannot be opened. */
void server_logs_own_error(void);
void server_logs_own(struct server_logs *logs);

/* Closes the error log, unless it is the one of this process. */
void server_logs_drop_error(struct server_logs *logs);

/* ---- rotation ---- */

enum { SERVER_LOGS_FILES = 80 }; /* two for each generation, and that of the process */

/* The files that one rotation has opened: each path once, for all generations. */
struct server_logs_rotation {
    unsigned count;
    unsigned failed; /* paths that could not be opened, and processes that did not get them */
    struct {
        const char *path; /* borrowed until the end */
        int fd;           /* -1: it could not be opened, which is reported */
    } file[SERVER_LOGS_FILES];
};

/* The items for a mailbox; the descriptors are borrowed. */
struct server_logs_message {
    unsigned count;
    struct ipc_mailbox_item item[IPC_MAILBOX_MAX];
    const char *setting[IPC_MAILBOX_MAX]; /* of the log that the item belongs to; borrowed */
};

/* Opens the error log of this process again. `logs` are those of the newest generation. */
struct server_logs_message server_logs_rotate_own(const struct server_logs *logs,
                                                  struct server_logs_rotation *rotation);

/* Opens the logs of a generation again. Returns what its workers get. */
struct server_logs_message server_logs_rotate(struct server_logs *logs,
                                              struct server_logs_rotation *rotation);

/* Gives the message to process `pid`, and wakes it. It gets sockets of its own. An empty message is
 * not given. */
void server_logs_pass(const struct ipc_mailbox *box, pid_t pid,
                      const struct server_logs_message *message,
                      struct server_logs_rotation *rotation);

/* Logs which files the rotation has opened. Failures are reported already. */
void server_logs_rotation_report(const struct server_logs_rotation *rotation);

/* Closes what was opened. */
void server_logs_rotation_end(struct server_logs_rotation *rotation);
