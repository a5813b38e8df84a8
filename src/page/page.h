/* SPDX-License-Identifier: MIT
 *
 * The statistics page: a process that serves over HTTP or HTTPS what the segment holds.
 * page/answer.h lists the paths. It is apart from the workers, so that it answers when they hang.
 * It is apart from the master, which reads no byte from the network.
 *
 * Its resources are fixed: a number of connections, one request head each, and one text of the
 * numbers for all clients. A client beyond that waits or is refused. The server does not notice.
 */
#pragma once

#include "page/password.h"
#include "stats/segment.h"

enum {
    PAGE_CONNECTIONS = 64,
    PAGE_STREAMS = 48,   /* of these, event streams; the rest stay free for requests */
    PAGE_ENDING_MS = 500 /* for answers under way when the page ends */
};

struct page_plan {
    const int *listeners;     /* listening, non-blocking */
    const bool *listener_tls; /* which of them are for TLS */
    size_t listener_count;
    struct tls_server *tls; /* NULL: none of them is for TLS */
    struct stats_segment *segment;
    const char *password; /* hash of crypt(3); NULL: no password */
    int master_fd; /* receives files of new arenas (ipc/fdpass.h); at its end the page ends */
    int signal_fd; /* SIGTERM and SIGQUIT end the page; SIGUSR1: see logs_fd */
    int logs_fd;   /* of a mailbox (ipc/mailbox.h), for an error log that is opened again */
};

/* Serves until it must end. Returns the exit status of the process. */
int page_run(const struct page_plan *plan);
