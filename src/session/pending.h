/* SPDX-License-Identifier: MIT
 *
 * A request whose answer is pending: a task (task/task.h) computes in another thread what the
 * answer depends on. The request waits here with a copy of its head. When the task is done, or its
 * time is over, the request is planned again from its start.
 *
 * A request of HTTP/1.1 is in `pending` of its session, and one of HTTP/2 is at its stream.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"
#include "task/task.h"

/* How long an answer may be pending. Then it is 503. */
#define SESSION_PENDING_NS UINT64_C(30000000000)

struct session_pending {
    struct task *task; /* NULL: its time is over */
    uint64_t limit_ns;
    uint64_t began_ns; /* when the first byte of the request arrived */
    bool body_read;
    struct http_request request;
    char head[]; /* the bytes that `request` was parsed from */
};

/* Makes the request of `x` wait for `task`, which is not submitted yet. NULL: out of memory. */
struct session_pending *session_pending_new(const struct session_exchange *x, struct task *task);

/* Frees *ref, with its task, and clears the copy of the head. Accepts a NULL in *ref. */
void session_pending_drop(struct session *s, struct session_pending **ref);

/* Whether the request can be planned again. */
bool session_pending_is_over(const struct session *s, const struct session_pending *pending);

/* The time is over: the task is cancelled. */
void session_pending_give_up(const struct session *s, struct session_pending *pending);

static inline uint64_t session_pending_limit_ns(const struct session_pending *pending)
{
    return pending->limit_ns;
}
