/* SPDX-License-Identifier: MIT
 *
 * Whether a text is an address to listen on: PORT (of 127.0.0.1), IPV4:PORT,
 * [IPV6]:PORT, *:PORT (every address) or unix:PATH. Syntax only: nothing is
 * resolved, opened or bound, and names of hosts are not addresses.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "config/reason.h"

/* Says why not in ret_reason. */
MUST_USE bool config_listen_check(struct span address, struct config_reason *ret_reason);

/* Whether connections may come from other machines; `address` is a checked one, not a bare port. */
bool config_listen_is_public(struct span address);

/* Whether the kernel picks the port, so that the same text twice is two addresses. */
bool config_listen_is_any_port(struct span address);
