/* SPDX-License-Identifier: MIT
 *
 * The data that verdicts are judged by: the rise of each counter in the last minute, and how
 * busy the workers are now. Private to verdicts.
 */
#pragma once

#include "view/view.h"

enum { VIEW_WORKERS_MAX = 256 };

/* A worker process or, where view_works_in_threads, one of its threads. */
struct view_worker {
    pid_t pid;
    double busy; /* share of the CPU time that it could use, 0 to 1 */
};

struct view_window {
    const struct view *view;
    const struct stats_generation *serving;
    double seconds; /* length of the window */
    uint64_t counter[STATS_NAMED], by_class[5];
    struct stats_counts queue_wait; /* since the earlier view, or since the start */

    bool has_shares; /* otherwise the fields below are unknown */
    double busy;     /* share of the CPU time that all workers could use */
    size_t worker_count;
    struct view_worker worker[VIEW_WORKERS_MAX]; /* the busiest first */
};

/* `before` is an earlier view of the same server, or NULL. */
void view_window_open(struct view_window *window, const struct view *view,
                      const struct view *before);
