/* SPDX-License-Identifier: MIT
 *
 * Where an event loop's connections come from: the listeners of its set, and in the first loop of a
 * worker to which the master passes connections, its end of the channel. Private to model/.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>

struct model_reactor;

/* The master passes connections to this loop, or still may. */
bool model_intake_is_passed(const struct model_reactor *r);

/* Has epoll tell of connections that wait, or not; keeps it in `listening`. 0 or -errno. */
int model_intake_listen(struct model_reactor *r, bool listening);

/* The descriptors to accept from, `listener_count` of them; -1: none. */
int *model_intake_listeners(const struct model_reactor *r);

/* Takes no more from the listeners. */
void model_intake_close_listeners(struct model_reactor *r);

/* Takes no more from the master. What still waits is for this worker's successor. */
void model_intake_end_passing(struct model_reactor *r);
