/* SPDX-License-Identifier: MIT
 *
 * Sockets of the generator: they connect to a target, from the plan's source addresses.
 */
#pragma once

#include "load/result.h"

#include <sys/uio.h>

/* Starts to connect. With source addresses, number `turn` modulo their count is used, or the next
 * one of the target's family. Returns a descriptor, non-blocking and CLOEXEC, or -errno. */
MUST_USE int load_socket_connect(const struct load_plan *plan, const struct load_target *target,
                                 unsigned turn);

/* Sends `count` pieces, at least one, with one call. Bytes, or -1 with errno, as sendmsg. */
ssize_t load_socket_send(int fd, struct iovec *pieces, unsigned count);

/* The error that connecting has ended with; `error` is an errno. */
enum load_error load_socket_error(int error);
