/* SPDX-License-Identifier: MIT
 *
 * What a user does between one event and the next. A request on a warm connection costs one recv
 * and one send. The clock is read once for each recv. That time is the end of an answer and,
 * without think time, also the start of the next request, so no time between the two is lost.
 */
#include "load/user.h"

#include "load/connection.h"

#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { FULL_READS_MAX = 8 };

/* Bodies from this length on are discarded in the kernel. A shorter copy costs less than the
 * second recv. */
enum { DISCARD_MIN = 32 * 1024 };

/* After a failure a user waits, twice as long each time. Without this, a server that refuses at
 * once would get requests faster than any real client sends them. */
#define AWAY_FIRST_NS UINT64_C(10000000)
enum { AWAY_DOUBLINGS_MAX = 6 };

/* ---- requests ---- */

/* Adds requests to those under way. Returns how many. */
static unsigned add_requests(struct load_thread *thread, struct load_user *user, uint64_t due_ns)
{
    unsigned added = 0, pipeline = thread->plan->pipeline;
    bool counted;
    while (user->asked_count < pipeline && load_thread_admits(thread, &counted)) {
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

void load_user_begin(struct load_thread *thread, struct load_user *user, uint64_t due_ns)
{
    user->mood = LOAD_ASKING;
    if (add_requests(thread, user, due_ns) == 0)
        be_idle(thread, user);
    else
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
    load_heap_put(&thread->heap, due_ns, user->number);
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
    uint64_t due_ns = user->due_ns + thread->plan->pace_ns;
    if (due_ns > thread->now_ns) {
        wait_until(thread, user, due_ns, LOAD_THINKING);
    } else {
        user->due_ns = due_ns;
        load_user_begin(thread, user, due_ns);
    }
}

static void rest_open(struct load_thread *thread, struct load_user *user)
{
    uint64_t due_ns = load_schedule_arrivals_due_ns(&thread->arrivals);
    if (thread->has_arrivals && due_ns <= thread->now_ns) { /* a request is waiting */
        load_schedule_arrivals_take(&thread->arrivals);
        load_user_begin(thread, user, due_ns);
        return;
    }
    user->mood = LOAD_FREE;
    uint32_t at = thread->free_first + thread->free_count++;
    thread->free_ring[at < thread->user_count ? at : at - thread->user_count] = user->number;
}

void load_user_rest(struct load_thread *thread, struct load_user *user)
{
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

void load_user_wake(struct load_thread *thread, struct load_user *user)
{
    bool was_away = user->mood == LOAD_AWAY;
    if (thread->phase == LOAD_PHASE_DRAIN || user->number >= thread->active) {
        be_idle(thread, user);
    } else if (was_away && thread->plan->loop == LOAD_OPEN) {
        rest_open(thread, user);
    } else if (was_away) {
        user->due_ns = thread->now_ns;
        load_user_begin(thread, user, thread->now_ns);
    } else {
        load_durations_add(&thread->tally.portion->outcome.lag, thread->now_ns - user->due_ns);
        load_user_begin(thread, user, user->due_ns);
    }
}

/* ---- answers ---- */

/* FNV-1a: the result does not depend on how the bytes were divided. */
#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static uint64_t hash_more(uint64_t hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ (unsigned char)bytes.at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Whether a body equals the first one of its target, by length or hash. */
static bool equals_first_body(struct load_thread *thread, const struct load_user *user,
                              uint32_t target)
{
    bool by_length = thread->plan->verify == LOAD_VERIFY_LENGTH;
    uint64_t mark = by_length ? user->response.body.total + 1 : user->body_hash | 1;
    uint64_t first = 0; /* no body has this mark */
    return atomic_compare_exchange_strong(&thread->shared->first_body[target], &first, mark) ||
           first == mark;
}

static void count_answer(struct load_thread *thread, const struct load_user *user,
                         const struct load_asked *asked)
{
    const struct load_plan *plan = thread->plan;
    if (plan->verify != LOAD_VERIFY_NOT && !equals_first_body(thread, user, asked->target)) {
        load_tally_error(&thread->tally,
                         plan->verify == LOAD_VERIFY_LENGTH ? LOAD_wrong_length : LOAD_wrong_body);
        return;
    }
    uint64_t first_ns = user->first_byte_ns;
    struct load_ended ended = {
        .response_ns = thread->now_ns - asked->sent_ns,
        .first_byte_ns = first_ns > asked->sent_ns ? first_ns - asked->sent_ns : 0,
        .intended_ns = plan->loop == LOAD_CLOSED ? UINT64_MAX : thread->now_ns - asked->due_ns,
        .body_bytes = user->response.body.total,
        .status = user->response.status,
        .reused = user->answered
    };
    load_tally_answer(&thread->tally, &ended);
}

/* The present answer is whole. */
static void end_answer(struct load_thread *thread, struct load_user *user)
{
    struct load_asked *asked = &user->asked[user->first];
    bool counted = asked->counted;
    if (counted)
        count_answer(thread, user, asked);
    load_tally_end_gap(&thread->tally, thread->now_ns, true, 1);
    user->first = (uint16_t)(user->first + 1u == thread->plan->pipeline ? 0 : user->first + 1u);
    user->asked_count--;
    user->failures = 0;
    if (user->sent_count > 0)
        user->sent_count--;
    else /* answered before it was sent whole, so the rest cannot be sent */
        user->response.persists = false;
    user->answered = true;
    user->began = user->in_body = false;
    if (counted)
        load_thread_ended(thread);
}

enum reading { READ_ON, READ_MORE, READ_LAST, READ_FAILED };

static enum reading read_head(struct load_thread *thread, struct load_user *user, struct span bytes,
                              size_t *ret_used)
{
    struct http_response *response = &user->response;
    enum http_parse result;
    if (user->sent_count == 0 && user->sent_part == 0)
        return READ_LAST; /* no request is sent that this could answer */
    if (!user->began) {
        user->began = true;
        user->first_byte_ns = thread->now_ns;
        user->body_hash = HASH_BEGIN;
        result = load_headcache_parse(&thread->headcache, user->asked[user->first].target, response,
                                      bytes, thread->plan->head);
    } else {
        result = http_response_parse(response, bytes, thread->plan->head);
    }
    if (result == HTTP_PARSE_MORE)
        return READ_MORE;
    if (result == HTTP_PARSE_FAILED) {
        load_connection_fail(
            thread, user, response->fault == HTTP_RESPONSE_FORM ? LOAD_no_http : LOAD_bad_framing);
        return READ_FAILED;
    }
    *ret_used = response->head_len;
    if (http_response_is_interim(response)) {
        *response = (struct http_response){ 0 };
        return READ_ON;
    }
    user->in_body = response->body.kind != HTTP_BODY_NONE;
    if (user->in_body)
        return READ_ON;
    end_answer(thread, user);
    return response->persists ? READ_ON : READ_LAST;
}

static enum reading read_body(struct load_thread *thread, struct load_user *user, struct span bytes,
                              size_t *ret_used)
{
    struct span data = { bytes.at, 0 };
    enum http_status status;
    enum http_body_step step =
        http_body_read(&user->response.body, bytes, ret_used, &data, &status);
    if (step == HTTP_BODY_FAILED) {
        load_connection_fail(thread, user, LOAD_bad_framing);
        return READ_FAILED;
    }
    if (thread->plan->verify == LOAD_VERIFY_HASH)
        user->body_hash = hash_more(user->body_hash, data);
    if (step == HTTP_BODY_MORE)
        return READ_ON;
    end_answer(thread, user);
    return user->response.persists ? READ_ON : READ_LAST;
}

/* Keeps a partial head until more arrives. false: out of memory. */
static bool keep_tail(struct load_user *user, struct span rest)
{
    if (rest.len == 0 || (user->tail && rest.len > user->tail_len)) {
        free(user->tail);
        user->tail = NULL;
    }
    if (rest.len > 0 && !user->tail)
        user->tail = malloc(rest.len);
    if (rest.len > 0 && !user->tail)
        return false;
    if (rest.len > 0)
        memcpy(user->tail, rest.at, rest.len);
    user->tail_len = (uint32_t)rest.len;
    return true;
}

/* Reads answers from `bytes`. false: the connection is closed, and its requests are ended. */
static bool read_answers(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    enum reading reading = READ_ON;
    while (bytes.len > 0 && reading == READ_ON) {
        size_t used = 0;
        reading = user->in_body ? read_body(thread, user, bytes, &used)
                                : read_head(thread, user, bytes, &used);
        bytes = span_skip(bytes, used);
    }
    if (reading == READ_FAILED)
        return false;
    if (reading == READ_LAST ||
        (reading == READ_ON && user->asked_count == 0 && !thread->plan->keep_alive)) {
        if (bytes.len > 0)
            load_tally_error(&thread->tally, LOAD_unexpected);
        load_connection_finish(thread, user);
        return true;
    }
    if (bytes.len > 0 || user->tail) {
        if (!keep_tail(user, bytes)) {
            load_connection_fail(thread, user, LOAD_no_descriptor);
            return false;
        }
    }
    return true;
}

/* Handles the end of the connection. */
static void handle_end(struct load_thread *thread, struct load_user *user, int error)
{
    if (error == 0 && user->in_body && user->response.body.kind == HTTP_BODY_CLOSE)
        end_answer(thread, user);
    if (user->asked_count == 0 && user->mood == LOAD_ASKING)
        load_connection_finish(thread, user);
    else
        load_connection_lost(thread, user, error);
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
    bool closed = user->connection == LOAD_CONNECTION_NONE; /* by the server */
    bool more = !closed && thread->plan->pipeline > 1 && user->number < thread->active &&
                add_requests(thread, user, thread->now_ns) > 0;
    bool elsewhere = user->sent_count == 0 &&
                     user->asked_count > 0; /* the next target has another address */
    if (closed || more || elsewhere)
        load_connection_transmit(thread, user);
}

/* How the next bytes are received. */
struct intake {
    size_t room;
    int flags;
};

/* A long body that is not compared is discarded in the kernel (MSG_TRUNC): copying it would cost
 * the generator as much as sending it costs the server. Its head is read alone, by the length of
 * the last head of this target. */
static struct intake next_intake(const struct load_thread *thread, const struct load_user *user)
{
    struct intake whole = { LOAD_BUFFER_SIZE, 0 };
    const struct http_body *body = &user->response.body;
    if (!user->discards || user->tail_len > 0 || user->asked_count == 0)
        return whole;
    if (user->in_body && body->kind == HTTP_BODY_LENGTH)
        return (struct intake){ body->remaining < whole.room ? (size_t)body->remaining : whole.room,
                                MSG_TRUNC };
    const struct http_response *known =
        load_headcache_known(&thread->headcache, user->asked[user->first].target);
    if (!user->began && known->body.kind == HTTP_BODY_LENGTH &&
        known->body.remaining >= DISCARD_MIN)
        return (struct intake){ known->head_len, 0 };
    return whole;
}

/* Receives until nothing is left. false: the connection is closed, and its requests are ended. */
static bool receive_answers(struct load_thread *thread, struct load_user *user, bool to_its_end)
{
    for (unsigned full = 0; user->connection == LOAD_CONNECTION_OPEN; full++) {
        if (full ==
            FULL_READS_MAX) { /* the other users get their turn; EPOLL_CTL_MOD repeats the event */
            struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                         .data.ptr = user };
            (void)epoll_ctl(thread->epoll_fd, EPOLL_CTL_MOD, user->fd, &event);
            return true;
        }
        size_t kept = user->tail_len;
        struct intake intake = next_intake(thread, user);
        ssize_t got = recv(user->fd, thread->buffer + kept, intake.room, intake.flags);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        int error = got < 0 ? -errno : 0;
        load_thread_read_clock(thread);
        if (got <= 0) {
            handle_end(thread, user, error);
            return user->mood == LOAD_ASKING && user->asked_count == 0;
        }
        if (kept > 0)
            memcpy(thread->buffer, user->tail, kept);
        thread->tally.portion->outcome.received_bytes += (size_t)got;
        if (!read_answers(thread, user, span_of(thread->buffer, kept + (size_t)got)))
            return false;
        bool drained = (size_t)got < intake.room || user->asked_count == 0;
        if (drained && !to_its_end)
            return true;
    }
    return true;
}

void load_user_event(struct load_thread *thread, struct load_user *user, unsigned events)
{
    if (user->connection == LOAD_CONNECTION_CONNECTING)
        load_connection_connected(thread, user);
    else if ((events & EPOLLOUT) != 0 && user->sent_count < user->asked_count)
        load_connection_transmit(thread, user);
    if ((events & ~(unsigned)EPOLLOUT) == 0 || user->connection != LOAD_CONNECTION_OPEN)
        return;
    bool to_its_end = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (receive_answers(thread, user, to_its_end))
        continue_cycle(thread, user);
}

/* ---- limits ---- */

static bool is_past(uint64_t now_ns, uint64_t from_ns, uint64_t limit_ns)
{
    return limit_ns > 0 && now_ns >= from_ns && now_ns - from_ns >= limit_ns;
}

void load_user_check_limits(struct load_thread *thread, struct load_user *user)
{
    const struct load_plan *plan = thread->plan;
    if (user->mood != LOAD_ASKING || user->asked_count == 0)
        return;
    uint64_t now_ns = thread->now_ns, sent_ns = user->asked[user->first].sent_ns;
    if (user->connection == LOAD_CONNECTION_CONNECTING) {
        if (is_past(now_ns, user->connect_ns, plan->connect_timeout_ns))
            load_connection_fail(thread, user, LOAD_connect_timeout);
    } else if (sent_ns > 0 && !user->began &&
               is_past(now_ns, sent_ns, plan->first_byte_timeout_ns)) {
        load_connection_fail(thread, user, LOAD_first_byte_timeout);
    } else if (sent_ns > 0 && is_past(now_ns, sent_ns, plan->response_timeout_ns)) {
        load_connection_fail(thread, user, LOAD_response_timeout);
    }
}
