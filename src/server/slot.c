/* SPDX-License-Identifier: MIT */
#include "server/slot.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/usage.h"
#include "server/backoff.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum {
    QUICK_DEATHS = 3, /* this many deaths are replaced at once; then each waits longer */
    CALM_MS = 1000,   /* the death of a worker that lived this long counts as the first */

    /* After SIGKILL. Freeing a large cache takes a second, and a thread then waits only shortly. */
    STUCK_MS = 5000, /* a worker with a stuck thread is given up */
    GONE_MS = 30000  /* any worker is */
};

void server_slot_empty(struct server_slot *slot)
{
    ipc_mailbox_close(&slot->logs);
    slot->predecessor = slot->pid;
    slot->pid = 0;
    slot->ended_ns = 0;
    slot->ready = false;
}

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

static void report_stuck(pid_t pid, const struct os_usage_stuck *stuck)
{
    if (stuck->thread > 0)
        log_error(LOG_ERROR,
                  "worker %d was killed and does not end: its thread %d waits in the kernel%s%s, "
                  "probably for a disk that hangs. The master waits for it no longer. It ends when "
                  "the disk answers. As root, read /proc/%d/task/%d/stack to see what it waits for",
                  (int)pid, (int)stuck->thread, stuck->where[0] ? " in " : "", stuck->where,
                  (int)pid, (int)stuck->thread);
    else
        log_error(LOG_ERROR,
                  "worker %d was killed and does not end. The master waits for it no longer. "
                  "/proc/%d/status says in which state it is",
                  (int)pid, (int)pid);
}

bool server_slot_abandon(struct server_slot *slot, uint64_t killed_ns, uint64_t now_ns)
{
    struct os_usage_stuck stuck = { 0 };
    const uint64_t since_ns = now_ns - killed_ns;
    if (since_ns < STUCK_MS * DURATION_MS ||
        (!os_usage_find_stuck(slot->pid, &stuck) && since_ns < GONE_MS * DURATION_MS))
        return false;
    report_stuck(slot->pid, &stuck);
    server_slot_empty(slot);
    return true;
}

bool server_slot_is_lost(struct server_slot *slot, uint64_t now_ns)
{
    if (slot->pid == 0)
        return false;
    if (!os_usage_has_ended(slot->pid)) {
        slot->ended_ns = 0;
        return false;
    }
    if (slot->ended_ns == 0)
        slot->ended_ns = now_ns;
    return server_slot_abandon(slot, slot->ended_ns, now_ns);
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
