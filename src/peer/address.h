/* SPDX-License-Identifier: MIT
 *
 * IP addresses and networks as text and as bytes. It exists because a client's address also
 * arrives as text that other machines wrote: in a PROXY header, in a field of a request, in the
 * configuration. The C library's reader of addresses needs a NUL behind the text, and this layer
 * is pure.
 *
 * It does not read names of hosts, ports or zones (%eth0).
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum { PEER_ADDRESS_BYTES = 16 };

struct peer_address {
    uint8_t family;                    /* 4 or 6; 0: no address */
    uint8_t bytes[PEER_ADDRESS_BYTES]; /* in network order; of IPv4, the first 4 count */
};

/* Reads an IPv4 address of four decimal numbers without leading zeros, or an IPv6 address (RFC 4291
 * section 2.2). `ret_address` is written only on success. An IPv4-mapped address stays IPv6 here:
 * see peer_address_unmap. */
MUST_USE bool peer_address_parse(struct span text, struct peer_address *ret_address);

/* Makes an IPv6 address that stands for an IPv4 address (::ffff:192.0.2.1) this IPv4 address. */
void peer_address_unmap(struct peer_address *address);

/* The addresses that begin with the same bits. */
struct peer_network {
    struct peer_address address;
    uint8_t bits;
};

/* Reads ADDRESS or ADDRESS/BITS. An address alone is a network of one. */
MUST_USE bool peer_network_parse(struct span text, struct peer_network *ret_network);

/* Networks that a setting names. */
struct peer_networks {
    const struct peer_network *each;
    size_t count;
    bool local; /* and clients of Unix sockets, whose family is 0 */
};

/* Whether one of the networks has the address of this family. `bytes` is as in struct
 * peer_address. */
bool peer_networks_have(const struct peer_networks *networks, uint8_t family,
                        const uint8_t bytes[PEER_ADDRESS_BYTES]);
