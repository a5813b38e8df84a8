/* SPDX-License-Identifier: MIT
 *
 * The loop of `weir top`: it reads a server, draws, and waits for the next reading, a key or a
 * signal.
 */
#pragma once

#include "base/check.h"
#include "stats/snapshot.h"

/* The source of snapshots. */
struct top_source {
    /* Gives a snapshot; NULL: there is no server. */
    struct stats_snapshot *(*take)(void *context);
    void *context;
    bool waits; /* it moves to another server when the first one has ended */
};

/* Shows a snapshot each `interval_ns` until the user quits; takes `first`. Returns 0; -errno when
 * the terminal cannot be used (terminal.h); or the number of a signal by which the caller then
 * ends this process. */
MUST_USE int top_watch(const struct top_source *source, struct stats_snapshot *first,
                       uint64_t interval_ns);
