/* SPDX-License-Identifier: MIT
 *
 * One second of a run: what its buckets tell, and how those of several threads or
 * machines become one.
 */
#pragma once

#include "load/result.h"

/* All that is told of `second` follows from its buckets, LOAD_SECOND_BUCKETS of them, and its
 * greatest. 0 or -ENOMEM; end with load_second_done. */
MUST_USE int load_second_settle(struct load_second *second, const uint64_t *bucket);
void load_second_done(struct load_second *second);

/* Adds what is only counted, without durations but for the greatest. */
void load_second_count(struct load_second *to, const struct load_second *from);

/* Adds all of it; percentiles that one of both does not know nobody knows. 0 or -errno. */
MUST_USE int load_second_add(struct load_second *to, const struct load_second *from);
