/* SPDX-License-Identifier: MIT
 *
 * How many requests each address has sent for the paths of each rule with a rate. All workers of a
 * configuration share one meter.
 *
 * A meter is a table in sets of one cache line. The hash of an address and a rule selects the set,
 * and 16 more of its bits are stored in the slot. The other bits of a slot are a time: until when
 * the address has used up its share (the generic cell rate algorithm, as in session/limits.c).
 * A slot whose time is over is free. In a full set, a new address gets the slot whose time is over
 * first. So memory is bounded, no lock is needed, and a slow rate, which keeps its slots for hours,
 * does not limit other addresses or rules. Those whose bits are equal share a slot: of 10,000
 * addresses that are counted at the same time, about 1 in 30,000.
 */
#pragma once

#include "base/check.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    SESSION_METER_SETS = 1 << 13,
    SESSION_METER_SLOTS = 8, /* of a set */
    /* A time is in microseconds of the monotonic clock, which begins with the start of the machine.
     * It has room for 8 years. */
    SESSION_METER_TIME_BITS = 48
};

/* Zeroed memory is a valid start. */
struct session_meter {
    _Atomic uint64_t slot[SESSION_METER_SETS][SESSION_METER_SLOTS];
};

/* Counts a request of the address and the rule with this hash, if there are at most `burst` at once
 * and then one in each interval, which is at least a microsecond. Returns 0 if it is counted, or
 * the nanoseconds after which the next one is possible. */
MUST_USE uint64_t session_meter_take(struct session_meter *meter, uint64_t hash,
                                     uint64_t interval_ns, uint64_t burst, uint64_t now_ns);
