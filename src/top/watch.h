/* SPDX-License-Identifier: MIT
 *
 * `weir top` at work: reads a server, draws, and waits for the next reading, a key or a signal.
 */
#pragma once

#include "base/check.h"
#include "stats/reader.h"

/* Where numbers come from. */
struct top_source {
    /* Gives what there is now; NULL: nothing. */
    struct stats_snapshot *(*take)(void *context);
    void *context;
    bool waits; /* it goes over to another server when the first has ended */
};

/* Shows them each `interval_ns` until somebody has enough; takes `first`. 0; -errno when this
 * terminal cannot be used (terminal.h); or the number of the signal that this process
 * was told to end by, and should. */
MUST_USE int top_watch(const struct top_source *source, struct stats_snapshot *first,
                       uint64_t interval_ns);
