/* SPDX-License-Identifier: MIT */
#include "session/pending.h"

#include <stdlib.h>

struct session_pending *session_pending_new(const struct session_exchange *x, struct task *task)
{
    const size_t len = x->request->head_len;
    struct session_pending *pending = malloc(sizeof(*pending) + len);
    if (!pending)
        return NULL;
    *pending = (struct session_pending){
        .task = task,
        .limit_ns = x->thread->now_ns + SESSION_PENDING_NS,
        .began_ns = x->began_ns,
        .body_read = x->body_read,
        .request = *x->request,
    };
    memcpy(pending->head, x->head, len);
    x->session->pending_count++;
    return pending;
}

void session_pending_drop(struct session *s, struct session_pending **ref)
{
    struct session_pending *pending = *ref;
    if (!pending)
        return;
    *ref = NULL;
    s->pending_count--;
    session_pending_give_up(s, pending);
    explicit_bzero(pending->head, pending->request.head_len); /* it may have a password */
    free(pending);
}

bool session_pending_is_over(const struct session *s, const struct session_pending *pending)
{
    return !pending->task || task_is_done(s->thread->shared->tasks, pending->task);
}

void session_pending_give_up(const struct session *s, struct session_pending *pending)
{
    if (pending->task)
        task_cancel(s->thread->shared->tasks, pending->task);
    pending->task = NULL;
}
