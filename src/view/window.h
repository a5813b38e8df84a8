/* SPDX-License-Identifier: MIT
 *
 * What the rules judge: by how much the counters have risen in the last minute, and how
 * busy the workers are just now. Private to verdicts.
 */
#pragma once

#include "view/view.h"

enum { VIEW_WORKERS_MAX = 256 };

/* A process or, where view_works_in_threads, a thread; the master is none. */
struct view_worker {
    pid_t pid;
    double busy; /* part of what it could use of the CPUs, 0 to 1 */
};

struct view_window {
    const struct view *view;
    const struct stats_generation *serving;
    double seconds; /* that it reaches back */
    uint64_t counter[STATS_NAMED], by_class[5];
    struct stats_counts queue_wait; /* between two views; all, without an earlier one */

    bool has_shares; /* else nothing is known of the rest */
    double busy;     /* all workers together, as part of the CPUs that they could use */
    size_t worker_count;
    struct view_worker worker[VIEW_WORKERS_MAX]; /* the busiest first */
};

/* `before`: an earlier view, or NULL. */
void view_window_open(struct view_window *window, const struct view *view,
                      const struct view *before);
