/* SPDX-License-Identifier: MIT
 *
 * Names that a site answers to: as in the Host field, lower case, without the
 * port. Nothing is looked up.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/reason.h"

/* A name, `*.` and a name, an IPv4 address or an IPv6 address in brackets. On
 * success *ret_host is in lower case, without a final dot, in the arena. */
MUST_USE bool config_host_check(struct span text, struct config_arena *arena, const char **ret_host,
                                struct config_reason *ret_reason);
