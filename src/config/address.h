/* SPDX-License-Identifier: MIT
 *
 * Addresses to listen on, networks, and the host names of sites. Only the form is checked: no name
 * is resolved, and no socket is opened.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"
#include "rules/network.h"

/* Whether `text` is PORT (of 127.0.0.1), IPV4:PORT, [IPV6]:PORT, localhost:PORT, *:PORT (every
 * address) or unix:PATH. All except the last may follow http:// or https://, and then the port may
 * be absent. A relative PATH begins at `folder`. On success *ret_text is the canonical form in the
 * arena: with a port, and without http://. On false, ret_reason says why. */
MUST_USE bool config_address_check(struct span text, struct span folder, struct config_arena *arena,
                                   const char **ret_text, struct config_reason *ret_reason);

/* One address to listen on. */
struct config_place {
    char address[128]; /* without a scheme */
    bool tls;          /* the text has https:// */
    bool optional;     /* the machine may lack it while it has the other one of the text */
};

/* Writes the addresses of a canonical text: two for localhost, one for any other. Returns their
 * number. */
enum { CONFIG_PLACES_MAX = 2 };
unsigned config_address_places(const char *text, struct config_place ret_places[CONFIG_PLACES_MAX]);

/* Whether the addresses of two places, if both are on TCP, cannot be listened at together: they are
 * the same, or one of them stands for every address and so includes the other. */
bool config_address_overlap(struct span a, struct span b);

/* The port of a place, or an empty span where it is a Unix socket. */
struct span config_address_port(struct span address);

/* Whether a place stands for every address, or for every one of IPv4. */
bool config_address_is_every(struct span address);

/* Whether `address` is a canonical text with https://. */
bool config_address_is_tls(struct span address);

/* Whether connections may come from other machines. `address` is a canonical text with a host. */
bool config_address_is_public(struct span address);

/* Whether the kernel picks the port, so that the same text twice is two addresses. */
bool config_address_is_any_port(struct span address);

/* Whether `network` is an IP address, or one with the number of its leading bits that count:
 * 192.0.2.0/24, 2001:db8::/32. On false, ret_reason says why. */
MUST_USE bool config_address_check_network(struct span network, struct config_reason *ret_reason);

/* Reads such a network. It admits nobody, and borrows `text`. On false, its `family` is 0 if the
 * address is wrong. Else the number of bits is wrong, and `bits` is the largest. */
MUST_USE bool config_address_read_network(struct span text, struct rules_network *ret_network);

/* Whether a valid `network` has bits behind those that count, as 192.0.2.7/24. */
bool config_address_has_idle_bits(struct span network);

/* Whether `text` is a host as in the Host field, without a port: a name, `*.` and a name, an IPv4
 * address or an IPv6 address in brackets. On success *ret_host is the lower-case form without a
 * final dot, in the arena. On false, ret_reason says why. */
MUST_USE bool config_address_check_host(struct span text, struct config_arena *arena,
                                        const char **ret_host, struct config_reason *ret_reason);
