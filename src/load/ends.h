/* SPDX-License-Identifier: MIT
 *
 * The two ends of the measured time: what each user is doing there, and what of it counts.
 */
#pragma once

#include "load/thread.h"

/* Corrects the sums of think time and away time at the start (sign 1) and the end (sign -1) of the
 * measured time. The time that users still have to wait is added at the start and subtracted at
 * the end. A user that is away may be late already, and is away until it wakes. A request that
 * ends in the measured time counts whole, so its time before the start belongs to the sums. A
 * request that ends later does not count. Users that only an earlier step had do not count, except
 * for their last request. */
void load_ends_clip(struct load_thread *thread, uint64_t now_ns, int sign);

/* Counts what the end at `end_ns` finds: requests under way, and streams that servers do not
 * allow. */
void load_ends_count(const struct load_thread *thread, uint64_t end_ns,
                     struct load_outcome *outcome);
