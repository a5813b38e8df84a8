/* SPDX-License-Identifier: MIT
 *
 * A view: a snapshot of the statistics with the resources that the server's processes use, and
 * the formats in which it is written. `weir stats`, `weir top` and the statistics page all show
 * views.
 */
#pragma once

#include "stats/snapshot.h"

#include <stdio.h>

/* The resources that all processes of the server use. */
struct view_usage {
    unsigned processes;
    uint64_t user_ns, system_ns; /* with those of processes that have ended */
    uint64_t resident_bytes;
    uint64_t files;                   /* open descriptors of all processes */
    uint64_t files_most, files_limit; /* of the process nearest to its limit */
    unsigned cpus;                    /* CPUs that the master may use */
};

/* A process that has a block, such as the master. */
struct view_process {
    pid_t pid;
    uint64_t cpu_ns;   /* its own; 0 when it has ended */
    uint64_t requests; /* of its blocks, with earlier writers: only differences mean something */
    unsigned threads;  /* that have a block */
};

/* A serving thread, in models whose threads accept for themselves. */
struct view_thread {
    pid_t pid, id;
    uint64_t cpu_ns;
};
enum { VIEW_THREADS_MAX = 256 };

struct view {
    struct stats_snapshot *snapshot;
    size_t process_count;
    struct view_process *process; /* in the order of their ids */
    size_t thread_count;
    struct view_thread *thread;
    struct view_usage usage;   /* zero when the server does not run */
    uint64_t used_ns;          /* when `usage` was measured, CLOCK_MONOTONIC */
    uint64_t heartbeat_age_ns; /* since the last heartbeat of the master */
    uint64_t read_ns;          /* CLOCK_MONOTONIC */
    int64_t read_s;
    const struct view *before; /* an earlier view of this server, borrowed; NULL: none */
};

/* Whether each thread of a worker accepts and serves for itself. */
bool view_works_in_threads(const struct stats_generation *serving);

/* Whether each connection has its own process, whose cache begins empty. */
bool view_works_in_processes(const struct stats_generation *serving);

/* Days until the end of a certificate; negative after it. */
double view_days_left(const struct view *view, const struct stats_certificate *certificate);

/* The generation that serves. */
static inline const struct stats_generation *view_serving(const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    return &s->generations[s->generation % STATS_GENERATIONS_MAX];
}

/* Takes `snapshot`, and measures the resources from /proc. */
void view_init(struct view *view, struct stats_snapshot *snapshot);

/* The same for frequent views. Measuring resources costs most, so they are copied from `before`, an
 * earlier view of the same server, while that is less than a second old. The view then has no
 * threads. `before` may be NULL. */
void view_init_next(struct view *view, struct stats_snapshot *snapshot, const struct view *before);
void view_done(struct view *view);

/* Takes the next URL of struct stats_generation's `urls` from the front of `rest`. Returns false at
 * the end. */
bool view_next_url(struct span *rest, struct span *ret_url);

/* "starting", "serving" or "stopping", as the master set it last. */
const char *view_state(const struct view *view);

/* A table; with `explain`, a sentence for each number. */
void view_print_text(const struct view *view, bool explain, FILE *out);

/* A table of what has changed since `earlier`, a view of the same server, with rates. */
void view_print_difference(const struct view *view, const struct view *earlier, FILE *out);

/* The format of docs/stats-json.md. */
void view_print_json(const struct view *view, FILE *out);

/* The same for a client that has had it before: only moments after `after_ns`, and without `about`,
 * which never changes. */
void view_print_json_after(const struct view *view, uint64_t after_ns, FILE *out);

/* Prometheus's text format 0.0.4, and OpenMetrics 1.0. */
void view_print_prometheus(const struct view *view, FILE *out);
void view_print_openmetrics(const struct view *view, FILE *out);
