/* SPDX-License-Identifier: MIT */
#include "rules/network.h"

static bool bits_are_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    const unsigned bytes = bits / 8, mask = 0xff00u >> bits % 8 & 0xff;
    return memcmp(a, b, bytes) == 0 && (mask == 0 || ((a[bytes] ^ b[bytes]) & mask) == 0);
}

static bool covers_address(const struct rules_network *network, uint8_t family,
                           const uint8_t *address)
{
    return network->family == 0 ||
           (network->family == family && bits_are_equal(network->address, address, network->bits));
}

bool rules_network_admits(const struct rules_network *networks, size_t count, uint8_t family,
                          const uint8_t *address)
{
    const struct rules_network *smallest = NULL;
    bool any_admits = false;

    for (size_t i = 0; i < count; i++) {
        const struct rules_network *network = &networks[i];
        any_admits = any_admits || network->admits;
        if (!covers_address(network, family, address))
            continue;
        /* `all` is larger than a network of 0 bits in one family. */
        if (!smallest || smallest->family == 0 ||
            (network->family != 0 && network->bits > smallest->bits))
            smallest = network;
    }
    return smallest ? smallest->admits : !any_admits;
}

bool rules_network_equal(const struct rules_network *a, const struct rules_network *b)
{
    return a->family == b->family && a->bits == b->bits &&
           bits_are_equal(a->address, b->address, a->bits);
}
