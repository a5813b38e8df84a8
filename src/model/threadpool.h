/* SPDX-License-Identifier: MIT
 *
 * A fixed number of threads that serve the connections a reactor accepts, and the queue between
 * them. Models `pool` and `prefork` use it.
 *
 * The reactor accepts, and watches connections that wait. A thread takes a connection from the
 * queue and serves it until it would wait. The next step depends on the policy:
 *
 *   park     the thread returns the connection to the reactor, which queues it again when it can
 *            continue. A few threads serve any number of clients.
 *   sticky   the thread waits with the connection until the client closes it. While every thread
 *            has a client, new connections wait in the queue. A connection that has waited for
 *            header-timeout is answered 503.
 *
 * When the queue is full, the reactor answers 503. No connection waits outside the queue.
 */
#pragma once

#include "base/check.h"

struct server;

/* Serves with one reactor, server->threads threads and a queue of server->pool_queue connections,
 * until the server has stopped. 0 or -errno. */
MUST_USE int model_threadpool_serve(struct server *server);
