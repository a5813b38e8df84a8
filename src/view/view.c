/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include "os/clock.h"
#include "os/process.h"
#include "os/usage.h"

#include <stdlib.h>
#include <string.h>

/* Each process has several files in /proc to read, so measurements are used this long. */
#define FRESH_NS UINT64_C(900000000)

static void add_usage(struct view_usage *to, const struct os_usage *from)
{
    to->processes++;
    to->user_ns += from->user_ns + from->children_user_ns;
    to->system_ns += from->system_ns + from->children_system_ns;
    to->resident_bytes += from->resident_bytes;
    to->files += from->files;
    if (to->files_limit == 0 || (double)from->files * (double)to->files_limit >
                                    (double)to->files_most * (double)from->files_limit) {
        to->files_most = from->files;
        to->files_limit = from->files_limit;
    }
}

static int compare_owners(const void *a, const void *b)
{
    const struct stats_part *left = a, *right = b;
    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    return left->block < right->block ? -1 : left->block > right->block;
}

static void add_part(struct view *view, const struct stats_part *part)
{
    struct view_process *last = view->process_count > 0 ? &view->process[view->process_count - 1]
                                                        : NULL;
    if (!last || last->pid != part->owner) {
        last = &view->process[view->process_count++];
        *last = (struct view_process){ .pid = part->owner };
    }
    last->requests += part->requests;
    last->threads++;
}

/* Lists each process that has a block, once. Without memory the list is empty. */
static void find_processes(struct view *view)
{
    struct stats_snapshot *s = view->snapshot;
    qsort(s->parts, s->part_count, sizeof(*s->parts), compare_owners);
    view->process = calloc(s->part_count + 1, sizeof(*view->process));
    for (size_t i = 0; view->process && i < s->part_count; i++)
        if (s->parts[i].owner > 0)
            add_part(view, &s->parts[i]);
}

bool view_works_in_threads(const struct stats_generation *serving)
{
    return serving->accepts == STATS_ACCEPTS_EACH;
}

bool view_works_in_processes(const struct stats_generation *serving)
{
    return serving->serves == STATS_SERVES_PROCESS;
}

static void find_threads(struct view *view)
{
    struct os_usage_thread found[VIEW_THREADS_MAX];
    view->thread = calloc(VIEW_THREADS_MAX, sizeof(*view->thread));
    for (size_t i = 0; view->thread && i < view->process_count; i++) {
        pid_t pid = view->process[i].pid;
        if (pid == view->snapshot->master)
            continue;
        size_t count = os_usage_threads(pid, found, VIEW_THREADS_MAX - view->thread_count);
        for (size_t t = 0; t < count; t++)
            view->thread[view->thread_count++] =
                (struct view_thread){ pid, found[t].id, found[t].cpu_ns };
    }
}

static void read_machine(struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    view->used_ns = view->read_ns;
    for (size_t i = 0; s->running && i < view->process_count; i++) {
        struct os_usage usage;
        if (os_usage_of(view->process[i].pid, &usage) < 0)
            continue;
        view->process[i].cpu_ns = usage.user_ns + usage.system_ns;
        add_usage(&view->usage, &usage);
    }
    view->usage.cpus = os_process_cpus(s->running ? s->master : 0);
    if (s->running && view_works_in_threads(view_serving(view)))
        find_threads(view);
}

double view_days_left(const struct view *view, const struct stats_certificate *certificate)
{
    return (double)(certificate->ends_s - view->read_s) / (24 * 3600);
}

/* Both lists are in the order of process ids. */
static void copy_machine(struct view *view, const struct view *before)
{
    size_t at = 0;
    view->used_ns = before->used_ns;
    view->usage = before->usage;
    for (size_t i = 0; i < view->process_count; i++) {
        struct view_process *process = &view->process[i];
        while (at < before->process_count && before->process[at].pid < process->pid)
            at++;
        if (at < before->process_count && before->process[at].pid == process->pid)
            process->cpu_ns = before->process[at].cpu_ns;
    }
}

static bool machine_is_fresh(const struct view *view, const struct view *before)
{
    return before && before->snapshot->master == view->snapshot->master &&
           view->snapshot->running && before->used_ns + FRESH_NS > view->read_ns;
}

void view_init_next(struct view *view, struct stats_snapshot *snapshot, const struct view *before)
{
    uint64_t now_ns = os_clock_now_ns();
    *view = (struct view){
        .snapshot = snapshot,
        .heartbeat_age_ns = now_ns > snapshot->heartbeat_ns ? now_ns - snapshot->heartbeat_ns : 0,
        .read_ns = now_ns,
        .read_s = os_clock_wall_s(),
    };
    find_processes(view);
    if (machine_is_fresh(view, before))
        copy_machine(view, before);
    else
        read_machine(view);
}

void view_init(struct view *view, struct stats_snapshot *snapshot)
{
    view_init_next(view, snapshot, NULL);
}

bool view_next_url(struct span *rest, struct span *ret_url)
{
    if (rest->len == 0)
        return false;
    *ret_url = span_take(rest, '\n');
    return true;
}

const char *view_state(const struct view *view)
{
    static const char *const names[STATS_STATES] = {
        [STATS_STARTING] = "starting",
        [STATS_SERVING] = "serving",
        [STATS_STOPPING] = "stopping",
    };
    return names[view->snapshot->state];
}

void view_done(struct view *view)
{
    stats_snapshot_free(view->snapshot);
    free(view->process);
    free(view->thread);
    view->snapshot = NULL;
    view->process = NULL;
    view->thread = NULL;
    view->process_count = view->thread_count = 0;
}
