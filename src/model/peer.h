/* SPDX-License-Identifier: MIT
 *
 * Who is at the other end of an accepted connection.
 */
#pragma once

#include "os/socket.h"
#include "session/session.h"

/* An IPv4 address in the form of IPv6 is told as IPv4. */
struct session_peer model_peer_of(const struct os_socket_address *address);
