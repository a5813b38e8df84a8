/* SPDX-License-Identifier: MIT
 *
 * Addresses to listen on, networks, and the host names of sites. Only the form is checked: no name
 * is resolved, and no socket is opened.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"

/* Whether `address` is PORT (of 127.0.0.1), IPV4:PORT, [IPV6]:PORT, *:PORT (every address) or
 * unix:PATH. A host name is not an address. On false, ret_reason says why. */
MUST_USE bool config_address_check(struct span address, struct config_reason *ret_reason);

/* Whether connections may come from other machines. `address` is a checked one with a host. */
bool config_address_is_public(struct span address);

/* Whether the kernel picks the port, so that the same text twice is two addresses. */
bool config_address_is_any_port(struct span address);

/* Whether `network` is an IP address, or one with the number of its leading bits that count:
 * 192.0.2.0/24, 2001:db8::/32. On false, ret_reason says why. */
MUST_USE bool config_address_check_network(struct span network, struct config_reason *ret_reason);

/* Whether `text` is a host as in the Host field, without a port: a name, `*.` and a name, an IPv4
 * address or an IPv6 address in brackets. On success *ret_host is the lower-case form without a
 * final dot, in the arena. On false, ret_reason says why. */
MUST_USE bool config_address_check_host(struct span text, struct config_arena *arena,
                                        const char **ret_host, struct config_reason *ret_reason);
