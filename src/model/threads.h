/* SPDX-License-Identifier: MIT
 *
 * Runs one function on several threads, each with a number: an event loop for each core.
 */
#pragma once

#include "base/check.h"

struct model_threads {
    unsigned count;
    /* What a thread does. 0 or -errno. */
    int (*serve)(void *context, unsigned index);
    /* Makes every `serve` return soon, also those that begin later. Any of the threads calls it,
     * and several may. */
    void (*stop)(void *context);
    void *context; /* borrows it until all have returned */
};

/* Runs `serve` on all threads, number 0 on the caller's, and returns when all have ended. When a
 * thread ends with an error, the others are stopped. When a thread cannot be started, the error log
 * says so, number 0 does not run, and the others are stopped. Returns 0, the failure to start, or
 * else the error of the lowest number. */
MUST_USE int model_threads_serve(const struct model_threads *threads);
