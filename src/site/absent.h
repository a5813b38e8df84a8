/* SPDX-License-Identifier: MIT
 *
 * Which paths were absent a moment ago. A request for such a path is likely to find nothing again,
 * so site/site.c first makes the cheapest call that can prove it. The table holds hints only: a
 * hint that is wrong costs that call, and never hides a file.
 *
 * The table has a fixed size for each site, and stores no names. So requests for random paths
 * evict nothing but hints. Private to site/.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SITE_ABSENT_SLOTS = 1024 };

/* Zeroed, it has no hints. */
struct site_absent {
    _Atomic uint64_t slots[SITE_ABSENT_SLOTS];
};

/* Whether the path with this hash was absent, in the same period of SITE_FRESH_NS. Any thread. */
bool site_absent_likely(const struct site_absent *absent, uint64_t hash, uint64_t now_ns);

/* A lookup has just found that the path is absent. Any thread. */
void site_absent_note(struct site_absent *absent, uint64_t hash, uint64_t now_ns);
