/* SPDX-License-Identifier: MIT
 *
 * The master's record of one worker: its process, and when a dead one is replaced. Starting and
 * signalling are the work of its generation (server/generation.h).
 */
#pragma once

#include "ipc/mailbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server_slot {
    pid_t pid;         /* 0: none */
    pid_t predecessor; /* the worker that died before it; 0: none */
    bool ready;
    uint64_t started_ns;
    uint64_t restart_ns;     /* when a dead one is replaced */
    uint64_t ended_ns;       /* when it was first found without its first thread; 0: it has one */
    unsigned deaths;         /* in quick succession */
    struct ipc_mailbox logs; /* for log files that are opened again */
};

/* The worker has died, or is given up. */
void server_slot_empty(struct server_slot *slot);

/* The worker has died: sets restart_ns. */
void server_slot_plan_restart(struct server_slot *slot, uint64_t now_ns);

/* Gives up a worker that was sent SIGKILL at `killed_ns`, and that has not ended long after it: a
 * thread of it waits in the kernel, usually for a disk. An error says so, and the slot is empty
 * afterwards. False: the worker still has time. */
bool server_slot_abandon(struct server_slot *slot, uint64_t killed_ns, uint64_t now_ns);

/* Looks at a worker that has no reason to end. Gives it up, as above, if it has died and one of
 * its threads keeps it from ending. */
bool server_slot_is_lost(struct server_slot *slot, uint64_t now_ns);

/* How worker `pid` has ended, as a sentence. `status` is that of wait(2). */
void server_slot_describe_end(char *out, size_t size, pid_t pid, int status);
