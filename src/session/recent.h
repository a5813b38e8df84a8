/* SPDX-License-Identifier: MIT
 *
 * Notes the answers that an operator may want to see (stats/recent.h): those with a status of 400
 * and above, slow ones and cut ones. An answer is slow from `slow_ns` of its thread on. An answer
 * that is whole in the output buffer is noted when it is ready. It is slow only if the server took
 * that long. Any other answer is noted at its end, and is slow also if the client took its body
 * slowly.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Notes the answer to `x`, which is whole in the output of its session. */
void session_recent_add_staged(const struct session_exchange *x, unsigned status,
                               uint64_t body_bytes);

/* The same, if it is worth a note. */
static inline void session_recent_staged(const struct session_exchange *x, unsigned status,
                                         uint64_t body_bytes)
{
    if (__builtin_expect(status >= 400 || x->began_ns + x->thread->slow_ns <= x->thread->now_ns, 0))
        session_recent_add_staged(x, status, body_bytes);
}

/* Prepares the note of an answer that is opened. */
void session_recent_open(const struct session_exchange *x, struct session_answer *answer);

/* Notes an answer that ends, if it is worth a note. Its line is not freed yet. */
void session_recent_end(struct session_thread *thread, const struct session_answer *answer);
