/* SPDX-License-Identifier: MIT
 *
 * What of a server's statistics people and machines are shown: a snapshot of its
 * segment, with what its processes have taken of the machine; and the ways to
 * write that down. Whoever shows statistics, in whatever form, takes them from here.
 */
#pragma once

#include "stats/reader.h"

#include <stdio.h>

/* What the processes of the instance have taken of the machine. */
struct view_usage {
    unsigned processes;
    uint64_t user_ns, system_ns; /* with those that have ended */
    uint64_t resident_bytes;
    uint64_t files;                   /* open descriptors, of all */
    uint64_t files_most, files_limit; /* of the process that is nearest to its limit */
    unsigned cpus;                    /* that the master may use */
};

/* A process that counts; the master does, too. */
struct view_process {
    pid_t pid;
    uint64_t cpu_ns;   /* its own; 0 when it is gone */
    uint64_t requests; /* of its blocks, with those who had them before: it is for differences */
    unsigned threads;  /* that count */
};

/* A thread of a worker, where threads are what does the work of a model. */
struct view_thread {
    pid_t pid, id;
    uint64_t cpu_ns;
};
enum { VIEW_THREADS_MAX = 256 };

struct view {
    struct stats_snapshot *snapshot;
    size_t process_count;
    struct view_process *process; /* by their ids */
    size_t thread_count;
    struct view_thread *thread;
    struct view_usage usage;   /* zero when it does not run */
    uint64_t used_ns;          /* when the machine was looked at, CLOCK_MONOTONIC */
    uint64_t heartbeat_age_ns; /* since the master was last seen at work */
    uint64_t read_ns;          /* CLOCK_MONOTONIC */
    int64_t read_s;
    const struct view *before; /* an earlier look at this server, borrowed; NULL: none */
};

/* Whether each thread of a worker is a worker of its own, that accepts and serves. */
bool view_works_in_threads(const struct stats_generation *serving);

/* Whether each connection has a process of its own, and with it a cache that begins empty. */
bool view_works_in_processes(const struct stats_generation *serving);

/* The generation that serves. */
static inline const struct stats_generation *view_serving(const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    return &s->generations[s->generation % STATS_GENERATIONS_MAX];
}

/* Looks at the machine, too; takes `snapshot`. */
void view_init(struct view *view, struct stats_snapshot *snapshot);

/* The same for those who look often: what the machine says, which costs most, is taken from an
 * earlier view of the same server while that is still fresh, but for threads, which there are
 * none of then. `before` may be NULL. */
void view_init_next(struct view *view, struct stats_snapshot *snapshot, const struct view *before);
void view_done(struct view *view);

/* "starting", "serving" or "stopping": what the master said last. */
const char *view_state(const struct view *view);

/* A table. With `explain`, a sentence for each number. */
void view_print_text(const struct view *view, bool explain, FILE *out);

/* As docs/stats-json.md says. */
void view_print_json(const struct view *view, FILE *out);

/* The same for who has had it before, with the moments up to `after_ns`: those that came behind it,
 * and nothing that stays as it is (`about`). */
void view_print_json_after(const struct view *view, uint64_t after_ns, FILE *out);

/* Prometheus's text format 0.0.4, and OpenMetrics 1.0. */
void view_print_prometheus(const struct view *view, FILE *out);
void view_print_openmetrics(const struct view *view, FILE *out);
