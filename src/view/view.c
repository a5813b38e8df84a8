/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include "os/clock.h"
#include "os/usage.h"

#include <stdlib.h>

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
    pid_t left = ((const struct stats_part *)a)->owner,
          right = ((const struct stats_part *)b)->owner;
    return left < right ? -1 : left > right;
}

/* Every process that counts, once; the master does. */
static struct view_usage usage_of(const struct stats_snapshot *s)
{
    struct view_usage total = { 0 };
    if (!s->running)
        return total;
    qsort(s->parts, s->part_count, sizeof(*s->parts), compare_owners);
    for (size_t i = 0; i < s->part_count; i++) {
        struct os_usage usage;
        pid_t pid = s->parts[i].owner;
        if (pid > 0 && (i == 0 || pid != s->parts[i - 1].owner) && os_usage_of(pid, &usage) == 0)
            add_usage(&total, &usage);
    }
    return total;
}

void view_init(struct view *view, struct stats_snapshot *snapshot)
{
    uint64_t now_ns = os_clock_now_ns();
    *view = (struct view){
        .snapshot = snapshot,
        .usage = usage_of(snapshot),
        .beat_age_ns = now_ns > snapshot->beat_ns ? now_ns - snapshot->beat_ns : 0,
        .read_ns = now_ns,
        .read_s = os_clock_wall_s(),
    };
}

void view_done(struct view *view)
{
    stats_snapshot_free(view->snapshot);
    view->snapshot = NULL;
}
