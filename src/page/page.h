/* SPDX-License-Identifier: MIT
 *
 * The statistics page: a process that answers over HTTP what the segment holds
 * (page/answer.h says what there is). It is apart from the workers, so that it answers when these
 * hang, and from the master, which reads no byte from the network.
 *
 * Its means are fixed: so many connections, one head of a request each, and the numbers
 * written down once for all who wait for them. Who asks for more than that waits or goes
 * without; the server does not notice.
 */
#pragma once

#include "page/password.h"
#include "stats/segment.h"

enum {
    PAGE_CONNECTIONS = 64,
    PAGE_STREAMS = 48,   /* of them, that wait for events: the others get a turn */
    PAGE_ENDING_MS = 500 /* for answers under way when the page ends */
};

struct page_plan {
    const int *listeners; /* they listen, and do not block */
    size_t listener_count;
    const struct stats_segment *segment;
    const char *password; /* hash of crypt(3); NULL: none */
    int end_fd;           /* at its end, the page ends */
    int signal_fd;        /* SIGTERM and SIGQUIT end it, SIGUSR1 reopens the error log */
};

/* Serves until told to end. The process's exit status. */
int page_run(const struct page_plan *plan);
