/* SPDX-License-Identifier: MIT
 *
 * The segment of a test, made before it and removed after it, and copies of it.
 */
#pragma once

#include "stats/segment.h"
#include "stats/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct stats_segment segment;

static inline int make_segment(void **state)
{
    (void)state;
    int why = 0;
    int rc = stats_segment_create(&segment, &why);
    return rc == 0 && why == 0 ? 0 : -1;
}

static inline int remove_segment(void **state)
{
    (void)state;
    stats_segment_remove(&segment);
    return 0;
}

/* A copy, as a reader takes it. */
static inline struct stats_snapshot *take_snapshot(void)
{
    char why[STATS_WHY_MAX] = "";
    struct stats_snapshot *snapshot = stats_snapshot_take(segment.name, why);
    if (!snapshot)
        fail_msg("%s", why);
    return snapshot;
}
