/* SPDX-License-Identifier: MIT
 *
 * The addresses of this machine's network interfaces.
 */
#pragma once

#include "os/socket.h"

/* Writes the addresses at which clients reach a socket of `address`, `most` of them at most: for a
 * wildcard (0.0.0.0 or [::]) those of the interfaces that are up, without link-local ones, which
 * need the name of an interface; else `address` itself, also if the interfaces cannot be listed.
 * Returns how many there are. */
size_t os_interface_reach(const struct os_socket_address *address,
                          struct os_socket_address *ret_addresses, size_t most);
