/* SPDX-License-Identifier: MIT
 *
 * An index of host names. An exact name comes first, then the longest "*.name" that covers the
 * host. It owns no memory, and does not copy the names. Any number of threads can search it.
 */
#pragma once

#include "base/span.h"

enum { HOSTS_NAME_MAX = 253 }; /* bytes of a host name as text (RFC 1035 section 2.3.4) */

struct hosts_slot {
    struct span name;  /* without the "*" of a wildcard: ".example.org" */
    const void *value; /* NULL: the slot is empty */
};

struct hosts {
    struct hosts_slot *slots;
    size_t mask;
    size_t names;
    bool wildcards;
};

/* How many slots an index of at most `names` names has. */
size_t hosts_slots(size_t names);

/* Borrows `slots`, hosts_slots(names) of them, zeroed, while the index is in use. */
void hosts_init(struct hosts *hosts, struct hosts_slot *slots, size_t names);

/* Adds a name in lower case, without port; "*.name" covers any name below. `name` is borrowed like
 * the slots. A name that the index already has keeps its first value. `value` is not NULL. */
void hosts_add(struct hosts *hosts, const char *name, const void *value);

/* The slot of the name that covers `host`, which may be in any case, has no port and may end with a
 * dot. NULL: no name covers it. */
const struct hosts_slot *hosts_find(const struct hosts *hosts, struct span host);
