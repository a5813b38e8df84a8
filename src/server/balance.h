/* SPDX-License-Identifier: MIT
 *
 * Which worker gets the next connection. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct server_balance_worker {
    uint32_t load; /* connections it has, or that are on their way to it */
    bool takes;    /* it lives, and there is room on the way */
};

/* The index of the least loaded worker that takes any; of several, the first one from `from` on,
 * round about, so that ties take turns. -1: none takes any. */
int server_balance_choose(const struct server_balance_worker *workers, unsigned count,
                          unsigned from);
