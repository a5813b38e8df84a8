/* SPDX-License-Identifier: MIT
 *
 * The networks that a setting names, for the layers that compare addresses with them. The
 * configuration keeps them as text.
 */
#pragma once

#include "peer/address.h"

/* Fills `networks` from texts that the configuration has checked: NETWORK, or `unix`. NULL is at
 * the end. 0 or -ENOMEM. Call server_networks_close in either case. */
MUST_USE int server_networks_open(struct peer_networks *networks, const char *const *texts);
void server_networks_close(struct peer_networks *networks);
