/* SPDX-License-Identifier: MIT
 *
 * Whether another cache-size would pay, from what the workers' caches say of other sizes.
 */
#pragma once

#include "view/view.h"

enum view_advice_size { VIEW_HALF, VIEW_SAME, VIEW_DOUBLE, VIEW_QUADRUPLE, VIEW_SIZES };

struct view_advice {
    /* There were lookups, and entries were given up; else there is no need to ask. Where each
     * connection has a cache that begins empty, nothing is: what misses is what it
     * asks for first, whatever the size. */
    bool known;
    double
        hit_ratio[VIEW_SIZES]; /* of the lookups; that of VIEW_SAME is counted, others estimated */
    uint64_t cache_bytes[VIEW_SIZES]; /* of each worker */
};

/* Since the start. */
struct view_advice view_advice_of(const struct view *view);

enum { VIEW_ADVICE_MAX = 192 };

/* "hit ratio now 91.2 %; about 85 % with 32M, 95 % with 128M, 97 % with 256M". */
void view_advice_say(const struct view *view, char out[VIEW_ADVICE_MAX]);
