/* SPDX-License-Identifier: MIT
 *
 * The control socket: `weir reload` and `weir stop` ask the master over it, and wait for
 * the outcome. A request is one line. The answer is lines of text, those that begin with
 * "..." being of interest only while one waits, and a last line `ok` or `failed`; then
 * the connection is closed. What can be asked is a table of the master's.
 *
 * It never holds the master up: no call waits, there are few clients, each with a
 * small fixed buffer and a deadline for what is the client's to do.
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
    SERVER_CONTROL_ANSWER_MAX = 32 * 1024, /* further text is dropped, the last line never */
    SERVER_CONTROL_CLIENT_MS = 5000,       /* to send the request; to take the answer */
    SERVER_CONTROL_POLL = SERVER_CONTROL_CLIENTS + 1
};

struct server_control;
struct server_control_client;

enum server_control_outcome {
    SERVER_CONTROL_OK,
    SERVER_CONTROL_FAILED,
    SERVER_CONTROL_LATER /* server_control_finish will say */
};

struct server_control_command {
    const char *request; /* the line that asks for it */
    enum server_control_outcome (*run)(void *context, struct server_control_client *client);
};

/* Listens at `where`: a path, or "auto" (server/runtime.h). With `inherited_fd` (taken; -1: none)
 * a predecessor listened at that path, and this goes on with its socket. `commands` (NULL request
 * at the end) and `context` are borrowed until the close. 0 or -errno; `ret_path` is
 * what was tried, for the message, at most SERVER_RUNTIME_MAX bytes. */
MUST_USE int server_control_open(struct server_control **ret_control, const char *where,
                                 int inherited_fd, const struct server_control_command *commands,
                                 void *context, char *ret_path);

/* What to wait for: fills at most SERVER_CONTROL_POLL elements; how many. NULL: 0. */
size_t server_control_poll(const struct server_control *control, struct pollfd *ends);

/* When server_control_serve is due at the latest; UINT64_MAX: no matter. Accepts NULL. */
uint64_t server_control_due_ns(const struct server_control *control);

/* Serves what is ready. `ends` are those of server_control_poll, after poll; `count` of them. */
void server_control_serve(struct server_control *control, const struct pollfd *ends, size_t count,
                          uint64_t now_ns);

/* Adds text to an answer, a line or several. */
void server_control_say(struct server_control_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, for every client that waits for the outcome of `request`. Accepts NULL. */
void server_control_tell(struct server_control *control, const char *request, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

/* The outcome of what was LATER, for every client that waits for `request`. Accepts NULL. */
void server_control_finish(struct server_control *control, const char *request, bool good,
                           uint64_t now_ns);

/* Takes no new clients, or takes them again: while a successor starts that goes on with
 * the same socket. Accepts NULL. */
void server_control_pause(struct server_control *control, bool paused);

/* The listening socket, if its path is fixed and a successor has to go on with it; else -1.
 * Accepts NULL. */
int server_control_listener(const struct server_control *control);

/* A successor answers from now on: takes no new clients any more, but goes on with those there
 * are. Accepts NULL. */
void server_control_retire(struct server_control *control);

/* Closes everything and removes the socket file. Accepts NULL. */
void server_control_close(struct server_control *control);

/* The same in a child process: closes the descriptors, and touches nothing else. Accepts NULL. */
void server_control_leave(struct server_control *control);
