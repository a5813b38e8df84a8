/* SPDX-License-Identifier: MIT */
#include "view/window.h"

#include "base/duration.h"

#include <stdlib.h>

/* An older moment is not of the last minute: the master had stopped meanwhile. */
#define REACH_NS (66 * DURATION_SECOND)

static uint64_t increase(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* ---- counters ---- */

/* The moment at which the window begins; NULL: it begins with the server. */
static const struct stats_moment *first_moment(const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    uint64_t now_ns = s->running ? view->read_ns : s->heartbeat_ns;
    if (s->moment_count == 0)
        return NULL;
    for (unsigned i = 0; i < s->moment_count; i++)
        if (increase(s->moment[i].at_ns, now_ns) <= REACH_NS)
            return i == 0 && s->moment_count < STATS_MOMENTS ? NULL : &s->moment[i];
    return &s->moment[s->moment_count - 1];
}

static void count_window(struct view_window *w)
{
    static const struct stats_moment nothing;
    const struct stats_snapshot *s = w->view->snapshot;
    const struct stats_moment *first = first_moment(w->view);
    uint64_t now_ns = s->running ? w->view->read_ns : s->heartbeat_ns;
    w->seconds = first ? (double)increase(first->at_ns, now_ns) / 1e9
                       : (double)increase((uint64_t)s->started_s, (uint64_t)w->view->read_s);
    first = first ? first : &nothing;
    for (unsigned i = 0; i < STATS_NAMED; i++)
        w->counter[i] = increase(first->counter[i], s->counter[i]);
    uint64_t now[5] = { 0 };
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        now[stats_statuses[i] / 100 - 1] += s->counter[STATS_STATUS_FIRST + i];
    for (unsigned i = 0; i < 5; i++)
        w->by_class[i] = increase(first->by_class[i], now[i]);
}

static void measure_queue(struct view_window *w, const struct view *before)
{
    w->queue_wait = w->view->snapshot->histogram[STATS_HISTOGRAM_queue_wait];
    if (!before)
        return;
    const struct stats_counts *was = &before->snapshot->histogram[STATS_HISTOGRAM_queue_wait];
    w->queue_wait.count = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        w->queue_wait.bucket[i] = increase(was->bucket[i], w->queue_wait.bucket[i]);
        w->queue_wait.count += w->queue_wait.bucket[i];
    }
}

/* ---- shares of CPU time ---- */

static int compare_process(const void *pid, const void *process)
{
    pid_t left = *(const pid_t *)pid, right = ((const struct view_process *)process)->pid;
    return left < right ? -1 : left > right;
}

static const struct view_process *find_process(const struct view *view, pid_t pid)
{
    return !view || view->process_count == 0 ? NULL
                                             : bsearch(&pid, view->process, view->process_count,
                                                       sizeof(*view->process), compare_process);
}

static const struct view_thread *find_thread(const struct view *view, pid_t id)
{
    for (size_t i = 0; view && i < view->thread_count; i++)
        if (view->thread[i].id == id)
            return &view->thread[i];
    return NULL;
}

static void add_window_worker(struct view_window *w, pid_t pid, double busy)
{
    if (w->worker_count < VIEW_WORKERS_MAX)
        w->worker[w->worker_count++] = (struct view_worker){ pid, busy < 1 ? busy : 1 };
}

/* The CPUs that a process can use at once: one for each thread. One block of the process is shared
 * by all its threads. */
static unsigned capacity(const struct view_process *process, unsigned cpus)
{
    unsigned threads = process->threads > 1 ? process->threads - 1 : 1;
    return threads < cpus ? threads : cpus;
}

static double measure_processes(struct view_window *w, const struct view *before, double elapsed_ns,
                                uint64_t *ret_capacity)
{
    const struct view *view = w->view;
    double total_ns = 0;
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *now = &view->process[i], *was = find_process(before, now->pid);
        if (now->pid == view->snapshot->master)
            continue;
        unsigned most = capacity(now, view->usage.cpus);
        *ret_capacity += most;
        if (before && !was)
            continue;
        double used_ns = (double)increase(was ? was->cpu_ns : 0, now->cpu_ns);
        total_ns += used_ns;
        add_window_worker(w, now->pid, used_ns / elapsed_ns / most);
    }
    return total_ns;
}

static double measure_threads(struct view_window *w, const struct view *before, double elapsed_ns)
{
    const struct view *view = w->view;
    double total_ns = 0;
    for (size_t i = 0; i < view->thread_count; i++) {
        const struct view_thread *now = &view->thread[i], *was = find_thread(before, now->id);
        if (before && !was)
            continue;
        double used_ns = (double)increase(was ? was->cpu_ns : 0, now->cpu_ns);
        total_ns += used_ns;
        add_window_worker(w, now->pid, used_ns / elapsed_ns);
    }
    return total_ns;
}

static int compare_busy(const void *a, const void *b)
{
    double left = ((const struct view_worker *)a)->busy,
           right = ((const struct view_worker *)b)->busy;
    return left > right ? -1 : left < right;
}

static void measure_shares(struct view_window *w, const struct view *before)
{
    const struct view *view = w->view;
    double elapsed_ns =
        before ? (double)increase(before->used_ns, view->used_ns)
               : (double)increase((uint64_t)w->serving->started_s, (uint64_t)view->read_s) * 1e9;
    if (!view->snapshot->running || elapsed_ns <= 0 || view->usage.cpus == 0)
        return;
    bool threads = view->thread_count > 0;
    uint64_t most = threads ? (uint64_t)w->serving->threads * w->serving->workers : 0;
    double used_ns = threads ? measure_threads(w, before, elapsed_ns)
                             : measure_processes(w, before, elapsed_ns, &most);
    if (w->worker_count == 0 || most == 0)
        return;
    qsort(w->worker, w->worker_count, sizeof(w->worker[0]), compare_busy);
    if (threads && w->worker_count > most) /* the others only wait for the end of a process */
        w->worker_count = (size_t)most;
    most = most < view->usage.cpus ? most : view->usage.cpus;
    w->has_shares = true;
    w->busy = used_ns / elapsed_ns / (double)most;
}

void view_window_open(struct view_window *window, const struct view *view,
                      const struct view *before)
{
    *window = (struct view_window){ .view = view, .serving = view_serving(view) };
    count_window(window);
    measure_queue(window, before);
    measure_shares(window, before);
}
