/* SPDX-License-Identifier: MIT */
#include "view/busy.h"

#include <stdio.h>

size_t view_busy_count(const struct view_window *w)
{
    size_t count = 0;
    while (count < w->worker_count && w->worker[count].busy >= VIEW_BUSY)
        count++;
    return count;
}

double view_busy_mean(const struct view_window *w, size_t from)
{
    double sum = 0;
    for (size_t i = from; i < w->worker_count; i++)
        sum += w->worker[i].busy;
    return w->worker_count > from ? sum / (double)(w->worker_count - from) : 0;
}

double view_busy_fairness(const struct view_window *w)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < w->worker_count; i++) {
        sum += w->worker[i].busy;
        squares += w->worker[i].busy * w->worker[i].busy;
    }
    return squares > 0 ? sum * sum / ((double)w->worker_count * squares) : 1;
}

void view_busy_say(const struct view_window *w, char out[VIEW_VERDICT_TEXT])
{
    size_t busy = view_busy_count(w), all = w->worker_count;
    if (!w->has_shares)
        return;
    if (busy == 0)
        (void)snprintf(out, VIEW_VERDICT_TEXT,
                       "%zu worker%s %s at most %.0f %% busy, so the connections came all at once",
                       all, all == 1 ? "" : "s", all == 1 ? "is" : "are", 100 * w->worker[0].busy);
    else if (busy == all)
        (void)snprintf(out, VIEW_VERDICT_TEXT, "%s busy %.0f %%",
                       all == 1 ? "the only worker is" : "all workers are",
                       100 * view_busy_mean(w, 0));
    else
        (void)snprintf(
            out, VIEW_VERDICT_TEXT, "%zu of %zu workers %s busy %.0f %%, the others %.0f %%", busy,
            all, busy == 1 ? "is" : "are", 100 * w->worker[0].busy, 100 * view_busy_mean(w, busy));
}

void view_busy_say_cure(const struct view_window *w, char out[VIEW_VERDICT_TEXT])
{
    bool left = w->view->usage.cpus > 1 && w->busy * (double)w->worker_count < 1.5;
    if (w->has_shares && w->busy >= VIEW_BUSY && !left)
        (void)snprintf(out, VIEW_VERDICT_TEXT,
                       "these CPUs are used up: add some, or another machine");
    else if (view_works_in_threads(w->serving))
        (void)snprintf(out, VIEW_VERDICT_TEXT,
                       "set `threads` to the number of CPUs (%u here), or add CPUs",
                       w->view->usage.cpus);
    else if (w->serving->serves == STATS_SERVES_POOL)
        (void)snprintf(out, VIEW_VERDICT_TEXT, "raise `threads`%s, or set `model = percore`",
                       w->serving->accepts == STATS_ACCEPTS_MASTER ? " or `workers`" : "");
    else
        (void)snprintf(out, VIEW_VERDICT_TEXT,
                       "set `model = percore`, which accepts on every CPU (%u here)",
                       w->view->usage.cpus);
}
