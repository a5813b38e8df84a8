/* SPDX-License-Identifier: MIT */
#include "load/ends.h"

#include "load/multiplex.h"

static int64_t time_since(uint64_t from_ns, uint64_t now_ns)
{
    return now_ns > from_ns ? (int64_t)(now_ns - from_ns) : 0;
}

void load_ends_clip(struct load_thread *thread, uint64_t now_ns, int sign)
{
    for (uint32_t i = 0; i < thread->user_count; i++) {
        const struct load_user *user = load_thread_user(thread, i);
        const struct load_asked *asked = &user->asked[user->first];
        bool active = user->number < thread->active;
        if (user->mood == LOAD_THINKING && active)
            thread->thought_ns += sign * time_since(now_ns, user->due_ns);
        else if (user->mood == LOAD_AWAY && active)
            thread->away_ns += sign * ((int64_t)user->due_ns - (int64_t)now_ns);
        else if (user->mood == LOAD_ASKING && user->asked_count > 0)
            thread->away_ns -=
                sign * time_since(asked->sent_ns > 0 ? asked->sent_ns : asked->due_ns, now_ns);
        else if (user->mood == LOAD_IDLE && active && sign < 0)
            thread->away_ns += time_since(
                user->due_ns > thread->measured_from_ns ? user->due_ns : thread->measured_from_ns,
                now_ns);
        if (user->mood == LOAD_ASKING && !active && sign < 0)
            thread->away_ns -= time_since(thread->measured_from_ns, now_ns);
    }
}

/* Most connections get the server's settings before the measured time. */
static void count_streams_missing(const struct load_thread *thread, struct load_outcome *outcome)
{
    for (uint32_t i = 0; thread->plan->http2 && i < thread->active; i++) {
        const struct load_user *user = load_thread_user(thread, i);
        unsigned missing = thread->plan->pipeline - load_multiplex_limit(thread, user);
        if (missing > outcome->streams_missing)
            outcome->streams_missing = missing;
    }
}

static void count_unfinished(const struct load_thread *thread, uint64_t end_ns,
                             struct load_outcome *outcome)
{
    unsigned places = thread->plan->pipeline;
    for (uint32_t i = 0; i < thread->user_count; i++) {
        const struct load_user *user = load_thread_user(thread, i);
        outcome->unfinished += user->asked_count;
        for (unsigned j = 0; j < user->asked_count; j++) {
            const struct load_asked *asked = &user->asked[(user->first + j) % places];
            uint64_t from_ns = asked->sent_ns > 0 ? asked->sent_ns : asked->due_ns;
            uint64_t wait_ns = (uint64_t)time_since(from_ns, end_ns);
            if (wait_ns > outcome->longest_wait_ns)
                outcome->longest_wait_ns = wait_ns;
        }
    }
}

void load_ends_count(const struct load_thread *thread, uint64_t end_ns,
                     struct load_outcome *outcome)
{
    count_streams_missing(thread, outcome);
    count_unfinished(thread, end_ns, outcome);
}
