/* SPDX-License-Identifier: MIT */
#include "server/slot.h"

#include "base/duration.h"
#include "server/backoff.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    QUICK_DEATHS = 3, /* this many deaths are replaced at once; then each waits longer */
    CALM_MS = 1000    /* the death of a worker that lived this long counts as the first */
};

/* A worker that dies is replaced at once. After quick deaths in succession, the wait doubles each
 * time, up to a second. */
void server_slot_plan_restart(struct server_slot *slot, uint64_t now_ns)
{
    if (now_ns - slot->started_ns >= CALM_MS * DURATION_MS)
        slot->deaths = 0;
    slot->deaths++;
    bool quick = slot->deaths <= QUICK_DEATHS;
    slot->restart_ns = now_ns + server_backoff_ns(quick ? 0 : slot->deaths - QUICK_DEATHS);
}

void server_slot_describe_end(char *out, size_t size, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        snprintf(out, size, "worker %d was killed by signal %d (%s)", (int)pid, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        snprintf(out, size, "worker %d ended with status %d", (int)pid, WEXITSTATUS(status));
    else
        snprintf(out, size, "worker %d has ended", (int)pid);
}
