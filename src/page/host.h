/* SPDX-License-Identifier: MIT
 *
 * Which hosts a page without a password may be asked for. A page of somebody else's,
 * open in a browser of this machine, can have its own name lead to 127.0.0.1 (DNS
 * rebinding) and then read what is there; but it cannot send another Host.
 */
#pragma once

#include "base/span.h"

/* Whether it names this machine and nothing else: localhost, 127.0.0.0/8 or [::1];
 * as of struct http_target, without the port. */
bool page_host_is_local(struct span host);
