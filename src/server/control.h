/* SPDX-License-Identifier: MIT
 *
 * The control socket. `weir reload` and `weir stop` send a request to the master over it and wait
 * for the outcome. A request is one line. The answer is lines of text and a last line, `ok` or
 * `failed`; then the master closes the connection. Lines that begin with "..." report progress.
 * The requests that exist are a table of the caller's.
 *
 * The control socket never blocks the master: no call waits, the number of clients is bounded, and
 * each client has a fixed buffer and a deadline for its part.
 */
#pragma once

#include "base/check.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SERVER_CONTROL_CLIENTS = 8,
    SERVER_CONTROL_REQUEST_MAX = 64,       /* bytes, with the newline */
    SERVER_CONTROL_ANSWER_MAX = 32 * 1024, /* bytes; further text is dropped, the last line never */
    SERVER_CONTROL_CLIENT_MS = 5000,       /* to send the request; to receive the answer */
    SERVER_CONTROL_POLL = SERVER_CONTROL_CLIENTS + 1
};

struct server_control;
struct server_control_client;

enum server_control_outcome {
    SERVER_CONTROL_OK,
    SERVER_CONTROL_FAILED,
    SERVER_CONTROL_LATER /* server_control_finish reports it */
};

struct server_control_command {
    const char *request; /* the line that requests it */
    enum server_control_outcome (*run)(void *context, struct server_control_client *client);
};

/* Listens at `where`: a path, or "auto" (server/runtime.h). `inherited_fd` (-1: none; taken) is the
 * socket of a predecessor; it is used if it listens at that path. `commands` (NULL request at the
 * end) and `context` are borrowed until the close. 0 or -errno. `ret_path` gets the path that was
 * tried, for the message; it has SERVER_RUNTIME_MAX bytes. */
MUST_USE int server_control_open(struct server_control **ret_control, const char *where,
                                 int inherited_fd, const struct server_control_command *commands,
                                 void *context, char *ret_path);

/* Listens again if the socket's file was removed, so that no client reaches the server. A failure
 * is only logged. Accepts NULL. */
void server_control_renew(struct server_control *control);

/* Fills at most SERVER_CONTROL_POLL elements for poll; returns how many. NULL: 0. */
size_t server_control_poll(const struct server_control *control, struct pollfd *ends);

/* The latest time for the next server_control_serve; UINT64_MAX: never. Accepts NULL. */
uint64_t server_control_due_ns(const struct server_control *control);

/* Serves the clients that are ready. `ends` are the `count` elements of server_control_poll, after
 * poll. */
void server_control_serve(struct server_control *control, const struct pollfd *ends, size_t count,
                          uint64_t now_ns);

/* Adds one or more lines to the answer. */
void server_control_say(struct server_control_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, for every client that waits for the outcome of `request`. Accepts NULL. */
void server_control_report(struct server_control *control, const char *request, const char *format,
                           ...) __attribute__((format(printf, 3, 4)));

/* The outcome of a request that was LATER, for every client that waits for it. Accepts NULL. */
void server_control_finish(struct server_control *control, const char *request, bool good,
                           uint64_t now_ns);

/* Accepts no new clients while a successor starts, if it will use the same socket: that of a fixed
 * path. Accepts NULL. */
void server_control_pause(struct server_control *control);

/* Accepts them again: the successor has failed. Accepts NULL. */
void server_control_continue(struct server_control *control);

/* The socket of a predecessor belongs to this process from now on, because it serves. Until then
 * its file stays at the end. Accepts NULL. */
void server_control_keep(struct server_control *control);

/* The listening socket if its path is fixed, so that a successor has to use the same socket; else,
 * and if its file was removed, -1. Accepts NULL. */
int server_control_listener(const struct server_control *control);

/* A successor answers from now on: closes the listening socket and serves the present clients to
 * the end. Accepts NULL. */
void server_control_retire(struct server_control *control);

/* Closes everything and removes the socket file, unless it is still a predecessor's. Accepts
 * NULL. */
void server_control_close(struct server_control *control);

/* For a child process: closes the descriptors and leaves the file. Accepts NULL. */
void server_control_leave(struct server_control *control);
