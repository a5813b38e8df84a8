/* SPDX-License-Identifier: MIT */
#include "load/answer.h"

#include "load/connection.h"
#include "load/multiplex.h"
#include "load/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { FULL_READS_MAX = 8 };

/* Bodies from this length on are discarded in the kernel. A shorter copy costs less than the
 * second recv. */
enum { DISCARD_MIN = 32 * 1024 };

/* ---- counting ---- */

uint64_t load_answer_hash(uint64_t hash, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ (unsigned char)bytes.at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Whether a body equals the first one of its target, by length or hash. */
static bool equals_first_body(struct load_thread *thread, const struct load_answer *answer,
                              uint32_t target)
{
    bool by_length = thread->plan->verify == LOAD_VERIFY_LENGTH;
    uint64_t mark = by_length ? answer->body_bytes + 1 : answer->body_hash | 1;
    uint64_t first = 0; /* no body has this mark */
    return atomic_compare_exchange_strong(&thread->shared->first_body[target], &first, mark) ||
           first == mark;
}

void load_answer_count(struct load_thread *thread, const struct load_user *user,
                       const struct load_asked *asked, const struct load_answer *answer)
{
    const struct load_plan *plan = thread->plan;
    /* With --requests, of the warm-up. No sum has its response time, so the user was away. */
    if (!asked->counted) {
        thread->away_ns += (int64_t)(thread->now_ns - asked->sent_ns);
        return;
    }
    /* An error page has another body, and is counted by its status. */
    if (plan->verify != LOAD_VERIFY_NOT && answer->status < 400 &&
        !equals_first_body(thread, answer, asked->target)) {
        load_tally_error(&thread->tally,
                         plan->verify == LOAD_VERIFY_LENGTH ? LOAD_wrong_length : LOAD_wrong_body);
        thread->away_ns += (int64_t)(thread->now_ns - asked->sent_ns);
        return;
    }
    uint64_t first_ns = answer->first_byte_ns;
    struct load_ended ended = {
        .response_ns = thread->now_ns - asked->sent_ns,
        .first_byte_ns = first_ns > asked->sent_ns ? first_ns - asked->sent_ns : 0,
        .intended_ns = plan->loop == LOAD_CLOSED ? UINT64_MAX : thread->now_ns - asked->due_ns,
        .body_bytes = answer->body_bytes,
        .status = answer->status,
        .reused = user->answered
    };
    load_tally_answer(&thread->tally, &ended);
    if (load_user_has_tls(user) && user->tls->agreed < LOAD_AGREED_MAX) {
        const struct load_agreed *agreed = &thread->agreed[user->tls->agreed];
        struct load_agreed *counted = &thread->tally.portion->outcome.agreed[user->tls->agreed];
        uint64_t answers = counted->answers + 1;
        if (answers == 1)
            *counted = *agreed;
        counted->answers = answers;
    }
}

/* The present answer is whole. */
static void end_answer(struct load_thread *thread, struct load_user *user)
{
    struct load_asked *asked = &user->asked[user->first];
    bool counted = asked->counted;
    struct load_answer answer = { .first_byte_ns = user->first_byte_ns,
                                  .body_bytes = user->response.body.total,
                                  .body_hash = user->body_hash,
                                  .status = user->response.status };
    load_answer_count(thread, user, asked, &answer);
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

/* ---- reading ---- */

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
        user->body_hash = LOAD_ANSWER_HASH;
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
        user->body_hash = load_answer_hash(user->body_hash, data);
    if (step == HTTP_BODY_MORE)
        return READ_ON;
    end_answer(thread, user);
    return user->response.persists ? READ_ON : READ_LAST;
}

bool load_answer_keep_tail(struct load_user *user, struct span rest)
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

/* Takes back bytes of an answer that does not count. The start of a head may have come earlier. */
static void uncount_bytes(struct load_thread *thread, size_t used)
{
    uint64_t *received = &thread->tally.portion->outcome.received_bytes;
    *received -= used < *received ? used : *received;
}

/* Reads answers from `bytes`. false: the connection is closed, and its requests are ended. */
static bool read_answers(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    enum reading reading = READ_ON;
    while (bytes.len > 0 && reading == READ_ON) {
        const bool counted = user->asked[user->first].counted;
        size_t used = 0;
        reading = user->in_body ? read_body(thread, user, bytes, &used)
                                : read_head(thread, user, bytes, &used);
        bytes = span_skip(bytes, used);
        if (!counted)
            uncount_bytes(thread, used);
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
        if (!load_answer_keep_tail(user, bytes)) {
            load_connection_fail(thread, user, LOAD_no_descriptor);
            return false;
        }
    }
    return true;
}

/* Handles the end of the connection. `whole`: the server has ended it, and no third party can have
 * cut it. Returns whether the user's cycle continues. */
static bool handle_end(struct load_thread *thread, struct load_user *user, int error, bool whole)
{
    bool by_close = user->in_body && user->response.body.kind == HTTP_BODY_CLOSE;
    if (error == 0 && by_close && !whole) {
        load_connection_fail(thread, user, LOAD_tls_truncated);
        return false;
    }
    if (error == 0 && by_close)
        end_answer(thread, user);
    if (user->asked_count == 0 && user->mood == LOAD_ASKING)
        load_connection_finish(thread, user);
    else
        load_connection_lost(thread, user, error);
    return user->mood == LOAD_ASKING && user->asked_count == 0;
}

/* ---- receiving ---- */

/* How the next bytes are received. */
struct intake {
    size_t room;
    int flags;
};

/* A long body that is not compared is discarded in the kernel (MSG_TRUNC): copying it would cost
 * the generator as much as sending it costs the server. Its head is read alone, by the length of
 * the last head of this target. No request is under way behind it, so bytes that follow the body
 * belong to no answer, and are discarded with it. Left where they are, they would begin the next
 * answer. */
static struct intake next_intake(const struct load_thread *thread, const struct load_user *user)
{
    struct intake whole = { LOAD_BUFFER_SIZE, 0 };
    const struct http_body *body = &user->response.body;
    if (!user->discards || user->tail_len > 0 || user->asked_count == 0)
        return whole;
    if (user->in_body && body->kind == HTTP_BODY_LENGTH)
        return (struct intake){ whole.room, MSG_TRUNC };
    const struct http_response *known =
        load_headcache_known(&thread->headcache, user->asked[user->first].target);
    if (!user->began && known->body.kind == HTTP_BODY_LENGTH &&
        known->body.remaining >= DISCARD_MIN)
        return (struct intake){ known->head_len, 0 };
    return whole;
}

/* The other users get their turn. EPOLL_CTL_MOD repeats the event. */
static void repeat_event(const struct load_thread *thread, struct load_user *user)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.ptr = user };
    (void)epoll_ctl(thread->epoll_fd, EPOLL_CTL_MOD, user->fd, &event);
}

static bool read_bytes(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    return thread->plan->http2 ? load_multiplex_read(thread, user, bytes)
                               : read_answers(thread, user, bytes);
}

/* Decrypts the bytes of connection.in, and reads the answers in them. */
static bool open_records(struct load_thread *thread, struct load_user *user)
{
    struct tls_connection *c = &user->tls->connection;
    enum tls_result result = TLS_DONE;
    while (result == TLS_DONE) {
        size_t kept = user->tail_len, len;
        result = tls_connection_read(c, thread->plain + kept, LOAD_BUFFER_SIZE, &len);
        if (len == 0)
            break;
        if (kept > 0)
            memcpy(thread->plain, user->tail, kept);
        thread->tally.portion->outcome.received_bytes += len;
        if (!read_bytes(thread, user, span_of(thread->plain, kept + len)))
            return false;
        if (user->connection != LOAD_CONNECTION_OPEN)
            return true;
    }
    if (result == TLS_ENDED)
        return handle_end(thread, user, 0, true);
    if (result == TLS_FAILED) {
        load_tls_fail(thread, user);
        return user->mood == LOAD_ASKING && user->asked_count == 0;
    }
    return true;
}

/* Continues the handshake or reads answers. */
static bool take_records(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    user->tls->connection.in = bytes;
    if (user->connection == LOAD_CONNECTION_SECURING) {
        enum load_tls_step step = load_tls_continue(thread, user);
        if (step != LOAD_TLS_READY)
            return step == LOAD_TLS_MORE;
        load_connection_transmit(thread, user);
        if (user->connection != LOAD_CONNECTION_OPEN)
            return false;
    }
    return open_records(thread, user);
}

/* Reads answers from `len` bytes in the buffer, behind the tail that is kept. */
static bool take_plain(struct load_thread *thread, struct load_user *user, size_t len)
{
    size_t kept = user->tail_len;
    if (kept > 0)
        memcpy(thread->buffer, user->tail, kept);
    thread->tally.portion->outcome.received_bytes += len;
    return read_bytes(thread, user, span_of(thread->buffer, kept + len));
}

bool load_answer_receive(struct load_thread *thread, struct load_user *user, bool to_its_end)
{
    const bool tls = load_user_has_tls(user);
    for (unsigned full = 0; user->connection >= LOAD_CONNECTION_SECURING; full++) {
        if (full == FULL_READS_MAX) {
            repeat_event(thread, user);
            return true;
        }
        struct intake intake = next_intake(thread, user);
        char *at = thread->buffer + (tls ? 0 : user->tail_len); /* a tail of TLS is plaintext */
        ssize_t got = recv(user->fd, at, intake.room, intake.flags);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        int error = got < 0 ? -errno : 0;
        load_thread_read_clock(thread);
        if (got <= 0)
            return handle_end(thread, user, error, !tls);
        if (!(tls ? take_records(thread, user, span_of(at, (size_t)got))
                  : take_plain(thread, user, (size_t)got)))
            return false;
        bool drained = (size_t)got < intake.room || (!tls && user->asked_count == 0);
        if (drained && !to_its_end)
            return true;
    }
    return true;
}
