/* SPDX-License-Identifier: MIT
 *
 * How a ring's loop accepts: the kernel goes on accepting from a listener with
 * one entry, and each connection is a completion. Near the bound of connections
 * the loop accepts itself, to keep it.
 */
#pragma once

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>

struct model_ringloop;

/* A listener of a loop; zeroed at first. */
struct model_ringdoor {
    bool accepting;  /* the kernel accepts, again and again */
    bool watching;   /* or tells when somebody waits */
    bool cancelling; /* and is to end that */
};

/* Act on completions. `number` is that of the listener. */
void model_ringdoor_accepted(struct model_ringloop *loop, size_t number,
                             const struct io_uring_cqe *done);
void model_ringdoor_knocked(struct model_ringloop *loop, size_t number, int result);

/* Once for each turn: accepts wherever there is room. */
void model_ringdoors_keep(struct model_ringloop *loop);

/* Once for each turn of a drain: whom the kernel has let in is served, but for those who come
 * faster than that; from then on it lets nobody in, once the other processes have let go of the
 * listeners too. Returns whether all are shut. */
bool model_ringdoors_shut(struct model_ringloop *loop);

/* Serves what other loops have handed over. */
void model_ringdoors_take_handed(struct model_ringloop *loop);
