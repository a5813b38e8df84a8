/* SPDX-License-Identifier: MIT
 *
 * Which client addresses a path admits. The smallest network that covers an address decides, so the
 * order of the networks does not matter. An address that no network covers is admitted unless the
 * list names networks that are admitted.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct rules_network {
    uint8_t family; /* 4 or 6; 0: every address, and clients of Unix sockets, which have none */
    uint8_t bits;   /* that count, from the first */
    uint8_t address[16];
    bool admits;
    struct span text; /* as it was written */
};

/* `family` is 4, 6 or 0, and `address` has 4, 16 or no bytes. */
bool rules_network_admits(const struct rules_network *networks, size_t count, uint8_t family,
                          const uint8_t *address);

/* Whether both are the same set of addresses. */
bool rules_network_equal(const struct rules_network *a, const struct rules_network *b);
