/* SPDX-License-Identifier: MIT
 *
 * The model `uring` beside its serve function (model/model.h): whether this machine can run it, and
 * its rings, which a worker makes before its sandbox forbids that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes the ring that the model needs, and closes it. When that fails, `why` names the call that
 * failed, and the cause as far as it is known. Call it before the process has threads. */
bool model_uring_possible(char *why, size_t size);

struct model_ringloop;
struct server;

/* Makes the loops with their rings, which the caller gives to model_uring_serve or frees with
 * model_uring_discard. NULL: this process cannot have them, and a warning in the error log says
 * why. */
struct model_ringloop *model_uring_open(struct server *server);

/* Accepts NULL. */
void model_uring_discard(struct model_ringloop *loops);
