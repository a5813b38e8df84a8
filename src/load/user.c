/* SPDX-License-Identifier: MIT
 *
 * What a user does between one event and the next. A request on a warm connection costs one recv
 * and one send. The clock is read once for each recv. That time is the end of an answer and,
 * without think time, also the start of the next request, so no time between the two is lost.
 */
#include "load/user.h"

#include "load/answer.h"
#include "load/connection.h"
#include "load/multiplex.h"

#include <sys/epoll.h>

/* After a failure a user waits, twice as long each time. Without this, a server that refuses at
 * once would get requests faster than any real client sends them. */
#define AWAY_FIRST_NS UINT64_C(10000000)
enum { AWAY_DOUBLINGS_MAX = 6 };

/* ---- requests ---- */

static unsigned limit_of(const struct load_thread *thread, const struct load_user *user)
{
    return thread->plan->http2 ? load_multiplex_limit(thread, user) : thread->plan->pipeline;
}

/* Whether one request more may be under way, and this is not the end. After a failure the next
 * request is alone until it has an answer. */
static bool has_place(const struct load_thread *thread, const struct load_user *user)
{
    return user->number < thread->active && thread->phase != LOAD_PHASE_DRAIN &&
           (user->failures == 0 || user->asked_count == 0) &&
           user->asked_count < limit_of(thread, user);
}

/* Adds at most `most` requests to those under way. Returns how many. */
static unsigned add_requests(struct load_thread *thread, struct load_user *user, uint64_t due_ns,
                             unsigned most)
{
    unsigned added = 0, pipeline = thread->plan->pipeline;
    unsigned limit = limit_of(thread, user);
    bool counted;
    while (added < most && user->asked_count < limit && load_thread_admits(thread, &counted)) {
        unsigned at = user->first + user->asked_count++;
        user->asked[at < pipeline ? at : at - pipeline] = (struct load_asked){
            .due_ns = due_ns,
            .target = (uint32_t)load_schedule_choice_draw(&thread->shared->choice, &user->random),
            .counted = counted
        };
        load_tally_await(&thread->tally, thread->now_ns);
        thread->tally.portion->outcome.requests += counted;
        added++;
    }
    return added;
}

static void be_idle(struct load_thread *thread, struct load_user *user)
{
    user->mood = LOAD_IDLE;
    user->due_ns = thread->now_ns;
}

void load_user_set_timer(struct load_thread *thread, struct load_user *user)
{
    if (!user->timed)
        load_heap_put(&thread->heap, user->due_ns, user->number);
    user->timed = true;
}

/* Offers one place to the next request of an open loop. A user with several places is offered
 * again behind all others, so that the requests are spread evenly. */
static void offer_place(struct load_thread *thread, struct load_user *user)
{
    if (user->offered || !has_place(thread, user))
        return;
    uint32_t at = thread->free_first + thread->free_count++;
    thread->free_ring[at < thread->user_count ? at : at - thread->user_count] = user->number;
    user->offered = true;
}

/* Paced, with streams: starts the requests that are due by now, and waits for the next one. Without
 * a place for it, the end of an answer calls this again. */
static void follow_pace(struct load_thread *thread, struct load_user *user)
{
    while (!user->timed && has_place(thread, user)) {
        user->due_ns += thread->plan->pace_ns;
        if (user->due_ns > thread->now_ns)
            load_user_set_timer(thread, user);
        else if (add_requests(thread, user, user->due_ns, 1) == 0)
            return;
    }
}

/* Users in the ring may have failed since, or have no place left. */
struct load_user *load_user_take_free(struct load_thread *thread)
{
    while (thread->free_count > 0) {
        struct load_user *user = load_thread_user(thread, thread->free_ring[thread->free_first]);
        thread->free_first = (thread->free_first + 1) % thread->user_count;
        thread->free_count--;
        user->offered = false;
        if (user->mood == LOAD_FREE && user->number >= thread->active)
            be_idle(thread, user);
        if ((user->mood == LOAD_FREE || user->mood == LOAD_ASKING) && has_place(thread, user))
            return user;
    }
    return NULL;
}

void load_user_begin(struct load_thread *thread, struct load_user *user, uint64_t due_ns)
{
    const struct load_plan *plan = thread->plan;
    unsigned added =
        add_requests(thread, user, due_ns, plan->loop == LOAD_CLOSED ? plan->pipeline : 1);
    user->mood = LOAD_ASKING;
    if (user->asked_count == 0)
        be_idle(thread, user);
    else if (plan->loop == LOAD_OPEN)
        offer_place(thread, user);
    else if (plan->loop == LOAD_PACED && plan->pipeline > 1)
        follow_pace(thread, user);
    if (added > 0)
        load_connection_transmit(thread, user);
}

/* ---- between requests ---- */

static void wait_until(struct load_thread *thread, struct load_user *user, uint64_t due_ns,
                       enum load_mood mood)
{
    uint64_t wait_ns = due_ns > thread->now_ns ? due_ns - thread->now_ns : 0;
    if (mood == LOAD_THINKING)
        thread->thought_ns += (int64_t)wait_ns;
    else
        thread->away_ns += (int64_t)wait_ns;
    user->mood = (uint8_t)mood;
    user->due_ns = due_ns;
    load_user_set_timer(thread, user);
}

static void rest_after_failure(struct load_thread *thread, struct load_user *user)
{
    unsigned doublings = user->failures - 1u;
    doublings = doublings < AWAY_DOUBLINGS_MAX ? doublings : AWAY_DOUBLINGS_MAX;
    uint64_t away_ns = AWAY_FIRST_NS << doublings;
    uint64_t think_ns = load_schedule_think_draw(&thread->plan->think, &user->random);
    wait_until(thread, user, thread->now_ns + (think_ns > away_ns ? think_ns : away_ns), LOAD_AWAY);
}

static void rest_closed(struct load_thread *thread, struct load_user *user)
{
    const struct load_think *think = &thread->plan->think;
    uint64_t think_ns = think->high_ns > 0 ? load_schedule_think_draw(think, &user->random) : 0;
    if (think_ns > 0)
        wait_until(thread, user, thread->now_ns + think_ns, LOAD_THINKING);
    else
        load_user_begin(thread, user, thread->now_ns);
}

/* A cycle that is late starts at once. Later cycles are not left out to make up for it. */
static void rest_paced(struct load_thread *thread, struct load_user *user)
{
    uint64_t due_ns = user->timed ? user->due_ns : user->due_ns + thread->plan->pace_ns;
    if (user->timed || due_ns > thread->now_ns) {
        wait_until(thread, user, due_ns, LOAD_THINKING);
    } else {
        user->due_ns = due_ns;
        load_user_begin(thread, user, due_ns);
    }
}

/* Open loop: takes the requests that are waiting, as many as there are places, and offers a place
 * that is left. Returns whether it has taken some. */
static bool take_waiting(struct load_thread *thread, struct load_user *user)
{
    bool taken = false;
    while (thread->has_arrivals && has_place(thread, user)) {
        uint64_t due_ns = load_schedule_arrivals_due_ns(&thread->arrivals);
        if (due_ns > thread->now_ns || add_requests(thread, user, due_ns, 1) == 0)
            break;
        load_schedule_arrivals_take(&thread->arrivals);
        taken = true;
    }
    offer_place(thread, user);
    return taken;
}

static void rest_open(struct load_thread *thread, struct load_user *user)
{
    bool taken = take_waiting(thread, user);
    user->mood = taken ? LOAD_ASKING : LOAD_FREE;
    if (taken)
        load_connection_transmit(thread, user);
}

void load_user_rest(struct load_thread *thread, struct load_user *user)
{
    if (user->number >= thread->active) /* this was its last request, which counts whole */
        thread->away_ns -= (int64_t)(thread->now_ns - thread->measured_from_ns);
    if (thread->phase == LOAD_PHASE_DRAIN || user->number >= thread->active) {
        be_idle(thread, user);
        return;
    }
    if (user->failures > 0) {
        rest_after_failure(thread, user);
        return;
    }
    switch (thread->plan->loop) {
    case LOAD_CLOSED:
        rest_closed(thread, user);
        break;
    case LOAD_PACED:
        rest_paced(thread, user);
        break;
    case LOAD_OPEN:
        rest_open(thread, user);
        break;
    }
}

/* Paced, with streams: the next request is due while others are under way. */
static void continue_pace(struct load_thread *thread, struct load_user *user)
{
    if (has_place(thread, user)) {
        load_durations_add(&thread->tally.portion->outcome.lag, thread->now_ns - user->due_ns);
        load_user_begin(thread, user, user->due_ns);
    } else {
        user->due_ns -= thread->plan->pace_ns; /* it is still to start */
    }
}

void load_user_wake(struct load_thread *thread, struct load_user *user)
{
    bool was_away = user->mood == LOAD_AWAY;
    user->timed = false;
    if (thread->now_ns < user->due_ns) {
        load_user_set_timer(thread, user);
    } else if (user->mood == LOAD_ASKING) {
        continue_pace(thread, user);
    } else if (user->mood == LOAD_IDLE) {
        user->due_ns = thread->now_ns; /* it has become idle since the timer was set */
    } else if (thread->phase == LOAD_PHASE_DRAIN || user->number >= thread->active) {
        be_idle(thread, user);
    } else if (was_away) {
        thread->away_ns += (int64_t)(thread->now_ns - user->due_ns); /* it was woken late */
        user->due_ns = thread->now_ns;
        if (thread->plan->loop == LOAD_OPEN) {
            rest_open(thread, user);
            return;
        }
        load_user_begin(thread, user, thread->now_ns);
    } else {
        load_durations_add(&thread->tally.portion->outcome.lag, thread->now_ns - user->due_ns);
        /* In a closed loop the user has thought for longer: that time is not the request's. */
        load_user_begin(thread, user,
                        thread->plan->loop == LOAD_CLOSED ? thread->now_ns : user->due_ns);
    }
}

/* ---- events ---- */

/* With streams: starts the requests that take the places of those that have ended. In a closed loop
 * with think time, or with a connection for each cycle, a cycle ends before the next one starts. */
static void refill(struct load_thread *thread, struct load_user *user)
{
    const struct load_plan *plan = thread->plan;
    switch (plan->loop) {
    case LOAD_CLOSED:
        if (plan->keep_alive && plan->think.high_ns == 0 && has_place(thread, user))
            (void)add_requests(thread, user, thread->now_ns, plan->pipeline);
        break;
    case LOAD_PACED:
        if (plan->pipeline > 1)
            follow_pace(thread, user);
        break;
    case LOAD_OPEN:
        (void)take_waiting(thread, user);
        break;
    }
}

/* Starts what follows the answers that were read. */
static void continue_cycle(struct load_thread *thread, struct load_user *user)
{
    if (user->mood != LOAD_ASKING)
        return;
    if (user->asked_count == 0) {
        load_user_rest(thread, user);
        return;
    }
    if (thread->plan->http2) {
        refill(thread, user);
        load_connection_transmit(thread, user);
        return;
    }
    bool closed = user->connection == LOAD_CONNECTION_NONE; /* by the server */
    bool more = !closed && thread->plan->pipeline > 1 && user->number < thread->active &&
                add_requests(thread, user, thread->now_ns, thread->plan->pipeline) > 0;
    bool elsewhere = user->sent_count == 0 &&
                     user->asked_count > 0; /* the next target has another origin */
    if (closed || more || elsewhere)
        load_connection_transmit(thread, user);
}

/* Sends what could not be sent before. */
static void continue_sending(struct load_thread *thread, struct load_user *user)
{
    bool open = user->connection == LOAD_CONNECTION_OPEN;
    if (open && thread->plan->http2)
        load_multiplex_transmit(thread, user);
    else if (open && user->sent_count < user->asked_count)
        load_connection_transmit(thread, user);
    else if (load_user_has_tls(user))
        (void)load_tls_flush(thread, user);
}

void load_user_event(struct load_thread *thread, struct load_user *user, unsigned events)
{
    if (user->connection == LOAD_CONNECTION_CONNECTING)
        load_connection_connected(thread, user);
    else if ((events & EPOLLOUT) != 0)
        continue_sending(thread, user);
    if ((events & ~(unsigned)EPOLLOUT) == 0 || user->connection < LOAD_CONNECTION_SECURING)
        return;
    bool to_its_end = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (load_answer_receive(thread, user, to_its_end))
        continue_cycle(thread, user);
    if (load_user_has_tls(user)) /* reading may produce records, such as a KeyUpdate */
        (void)load_tls_flush(thread, user);
}

/* ---- limits ---- */

void load_user_check_limits(struct load_thread *thread, struct load_user *user)
{
    const struct load_plan *plan = thread->plan;
    if (user->mood != LOAD_ASKING || user->asked_count == 0)
        return;
    uint64_t sent_ns = user->asked[user->first].sent_ns;
    if (user->connection == LOAD_CONNECTION_CONNECTING) {
        if (load_thread_is_past(thread, user->connect_ns, plan->connect_timeout_ns))
            load_connection_fail(thread, user, LOAD_connect_timeout);
    } else if (user->connection == LOAD_CONNECTION_SECURING) {
        if (load_thread_is_past(thread, user->connect_ns, plan->connect_timeout_ns))
            load_connection_fail(thread, user, LOAD_tls_timeout);
    } else if (plan->http2) {
        if (user->connection == LOAD_CONNECTION_OPEN && load_multiplex_check_limits(thread, user))
            continue_cycle(thread, user);
    } else if (sent_ns > 0 && !user->began &&
               load_thread_is_past(thread, sent_ns, plan->first_byte_timeout_ns)) {
        load_connection_fail(thread, user, LOAD_first_byte_timeout);
    } else if (sent_ns > 0 && load_thread_is_past(thread, sent_ns, plan->response_timeout_ns)) {
        load_connection_fail(thread, user, LOAD_response_timeout);
    }
}
