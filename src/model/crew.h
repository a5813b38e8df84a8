/* SPDX-License-Identifier: MIT
 *
 * The fixed number of threads that serve what a loop accepts, and the queue
 * between the two. Models `pool` and `prefork` are made of it.
 *
 * The loop accepts, and watches connections on which there is nothing to do. A
 * thread takes a connection from the queue and serves it until it would wait;
 * then, by policy,
 *
 *   park     gives it back to the loop, which puts it into the queue again when
 *            it may go on: any number of clients make progress on a few threads;
 *   sticky   waits with it until the client leaves: whoever comes when all
 *            threads have a client waits in the queue, for as long as they like.
 *
 * A queue that is full is answered 503, by the loop: nothing waits outside it.
 */
#pragma once

#include "base/check.h"

struct model_crew;
struct model_placement;
struct model_reactor;
struct server;

/* Makes the queue (server->pool_queue) and what the server->threads threads
 * need; none runs yet. 0 or -errno, with *ret_crew for model_crew_free. */
MUST_USE int model_crew_new(struct server *server, struct model_crew **ret_crew);

/* How a loop is given to the crew: the `placement` of model_reactors_new, with the
 * crew as its `place`. It can be copied, and hooks that are NULL in it set. */
extern const struct model_placement model_crew_placement;

/* Starts the threads for this loop, which is the only one of its process. 0 or
 * -errno: then some may run, which model_crew_free ends. */
MUST_USE int model_crew_start(struct model_crew *crew, struct model_reactor *loop);

/* Ends and joins the threads, and frees. The loop does not run any more, and is
 * still there. Accepts NULL. */
void model_crew_free(struct model_crew *crew);
