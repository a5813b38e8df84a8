/* SPDX-License-Identifier: MIT
 *
 * The effect of another cache-size, from the estimates of the workers' caches (site/ghost.h).
 */
#pragma once

#include "view/view.h"

enum view_advice_size { VIEW_HALF, VIEW_SAME, VIEW_DOUBLE, VIEW_QUADRUPLE, VIEW_SIZES };

struct view_advice {
    /* There were lookups, and entries were evicted. Never with a cache for each connection: there
     * the first request for a file on each connection misses, whatever the size. */
    bool known;
    double
        hit_ratio[VIEW_SIZES]; /* of all lookups: VIEW_SAME is counted, the others are estimated */
    uint64_t cache_bytes[VIEW_SIZES]; /* of each worker */
};

/* Since the server started. */
struct view_advice view_advice_of(const struct view *view);

enum { VIEW_ADVICE_MAX = 192 };

/* "hit ratio now 91.2 %; about 85 % with 32M, 95 % with 128M, 97 % with 256M". */
void view_advice_say(const struct view *view, char out[VIEW_ADVICE_MAX]);
