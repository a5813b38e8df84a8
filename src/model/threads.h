/* SPDX-License-Identifier: MIT
 *
 * One function on several threads at once, each told its number: a loop, or a
 * ring, for each core.
 */
#pragma once

#include "base/check.h"

struct model_threads {
    unsigned count;
    /* What a thread does. 0 or -errno. */
    int (*serve)(void *context, unsigned index);
    /* Has every `run` return soon, those too that have yet to begin. Called by any of the threads,
     * perhaps by several. */
    void (*stop)(void *context);
    void *context; /* borrowed until all have returned */
};

/* Runs them, number 0 in the caller's thread, and returns when all have ended. When a thread
 * cannot be started (the error log says so; number 0 does not run then), or ends with an error, the
 * others are stopped. 0, or -errno: the failure to start, or else that of the lowest number. */
MUST_USE int model_threads_serve(const struct model_threads *threads);
