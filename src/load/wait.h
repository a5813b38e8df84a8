/* SPDX-License-Identifier: MIT
 *
 * How a thread of the generator waits for events.
 */
#pragma once

#include "load/thread.h"

#include <sys/epoll.h>

/* Waits for events until the next user is due, or polls once with --spin. Fills `events` and sets
 * thread->now_ns. Returns their number, 0 or below `most`, or -errno. */
MUST_USE int load_wait_for_events(struct load_thread *thread, struct epoll_event *events, int most);
