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

struct server;

/* Serves with one loop and server->threads threads, and a queue of server->pool_queue
 * connections between them, until the server has stopped. 0 or -errno. */
MUST_USE int model_threadpool_run(struct server *server);
