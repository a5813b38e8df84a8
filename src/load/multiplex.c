/* SPDX-License-Identifier: MIT */
#include "load/multiplex.h"

#include "http2/error.h"
#include "load/answer.h"
#include "load/connection.h"
#include "load/socket.h"
#include "load/thread.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes that wait for a server which sends frames and reads none. */
enum { WAITING_MAX = 4 * 1024 * 1024 };

/* ---- memory ---- */

bool load_multiplex_prepare(const struct load_thread *thread, struct load_user *user)
{
    unsigned places = thread->plan->pipeline;
    if (user->multiplex)
        return true;
    struct load_multiplex *m =
        calloc(1, sizeof(*m) + places * (sizeof(*m->streams) + sizeof(*m->answers)));
    if (!m)
        return false;
    m->answers = (struct load_multiplex_answer *)(void *)&m->streams[places];
    user->multiplex = m;
    return true;
}

static void drop_unsent(struct load_multiplex *m)
{
    free(m->unsent);
    m->unsent = NULL;
    m->unsent_len = m->unsent_at = 0;
}

void load_multiplex_free(struct load_multiplex *multiplex)
{
    if (!multiplex)
        return;
    drop_unsent(multiplex);
    free(multiplex->http2.table.memory);
    free(multiplex);
}

void load_multiplex_close(struct load_user *user)
{
    drop_unsent(user->multiplex);
    user->multiplex->begun = false;
    user->multiplex->waiting = 0;
}

/* Doubles the memory of the table at least. false: out of memory. */
static bool grow_table(struct http2_table *table, size_t needed)
{
    size_t size = 2 * (size_t)table->memory_size;
    size = size < HTTP2_TABLE_MEMORY_MAX ? size : HTTP2_TABLE_MEMORY_MAX;
    size = size > needed ? size : needed;
    char *old = table->memory, *memory = malloc(size);
    if (!memory)
        return false;
    http2_table_move(table, memory, size);
    free(old);
    return true;
}

/* ---- places ---- */

static unsigned place_of(const struct load_thread *thread, const struct load_user *user,
                         unsigned index)
{
    unsigned at = user->first + index, places = thread->plan->pipeline;
    return at < places ? at : at - places;
}

/* Exchanges a request whose stream is closed with another one. */
static void exchange(struct load_user *user, unsigned closed, unsigned other)
{
    struct load_multiplex *m = user->multiplex;
    if (closed == other)
        return;
    struct load_asked asked = user->asked[closed];
    struct load_multiplex_answer answer = m->answers[closed];
    user->asked[closed] = user->asked[other];
    m->answers[closed] = m->answers[other];
    load_http2_move(&m->http2, other, closed);
    user->asked[other] = asked;
    m->answers[other] = answer;
}

static void end_answer(struct load_thread *thread, struct load_user *user, unsigned place)
{
    const struct load_multiplex *m = user->multiplex;
    bool counted = user->asked[place].counted;
    struct load_answer whole = { .first_byte_ns = m->answers[place].first_byte_ns,
                                 .body_bytes = m->http2.stream[place].received,
                                 .body_hash = m->answers[place].body_hash,
                                 .status = m->http2.stream[place].status };
    load_answer_count(thread, user, &user->asked[place], &whole);
    load_tally_end_gap(&thread->tally, thread->now_ns, true, 1);
    exchange(user, place, user->first);
    user->first = (uint16_t)(user->first + 1u == thread->plan->pipeline ? 0 : user->first + 1u);
    user->asked_count--;
    user->sent_count--;
    user->failures = 0;
    user->answered = true;
    if (counted)
        load_thread_ended(thread);
}

/* Ends a request whose stream is closed, without an answer. */
static void fail_stream(struct load_thread *thread, struct load_user *user, unsigned place,
                        enum load_error error)
{
    exchange(user, place, user->first);
    user->sent_count--;
    load_connection_fail_first(thread, user, error);
    /* Streams that fail together are one failure, as the requests of a lost connection are. */
    if (user->failures == 0 || (user->asked_count == 0 && user->failures < UINT8_MAX))
        user->failures++;
}

/* A request whose stream is closed, and that the server has not processed, is sent again. */
static void send_again(struct load_thread *thread, struct load_user *user, unsigned place)
{
    thread->tally.portion->outcome.unprocessed += user->asked[place].counted;
    exchange(user, place, place_of(thread, user, user->sent_count - 1u));
    user->sent_count--;
}

void load_multiplex_fail_begun(struct load_thread *thread, struct load_user *user,
                               enum load_error error)
{
    struct load_multiplex *m = user->multiplex;
    for (unsigned i = 0; i < user->sent_count;) {
        unsigned place = place_of(thread, user, i);
        if (m->answers[place].first_byte_ns > 0) {
            load_http2_forget(&m->http2, place);
            fail_stream(thread, user, place, error); /* the ring begins one place later */
        } else {
            i++;
        }
    }
}

/* ---- output ---- */

/* Keeps what the kernel has not taken. */
static bool keep_unsent(struct load_thread *thread, struct load_user *user, struct span rest)
{
    struct load_multiplex *m = user->multiplex;
    size_t kept = m->unsent_len - m->unsent_at;
    char *more = malloc(kept + rest.len);
    if (!more) {
        load_connection_fail(thread, user, LOAD_no_descriptor);
        return false;
    }
    if (m->unsent)
        memcpy(more, m->unsent + m->unsent_at, kept);
    if (rest.len > 0)
        memcpy(more + kept, rest.at, rest.len);
    drop_unsent(m);
    m->unsent = more;
    m->unsent_len = kept + rest.len;
    return true;
}

/* Sends bytes. Returns how many the kernel took; -1: the connection is lost. */
static ssize_t send_plain(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    size_t gone = 0;
    while (gone < bytes.len) {
        /* sendmsg does not write through the pointer */
        struct iovec piece = { (void *)(uintptr_t)(bytes.at + gone), bytes.len - gone };
        ssize_t sent = load_socket_send(user->fd, &piece, 1);
        if (sent >= 0) {
            gone += (size_t)sent;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            load_connection_lost(thread, user, -errno);
            return -1;
        }
    }
    return (ssize_t)gone;
}

/* Sends what waits. false: some of it still does, or the connection is lost. */
static bool flush(struct load_thread *thread, struct load_user *user)
{
    struct load_multiplex *m = user->multiplex;
    if (load_user_has_tls(user)) {
        if (!load_tls_flush(thread, user))
            return false;
    } else if (m->unsent) {
        ssize_t sent = send_plain(thread, user,
                                  span_of(m->unsent + m->unsent_at, m->unsent_len - m->unsent_at));
        if (sent < 0)
            return false;
        m->unsent_at += (size_t)sent;
        if (m->unsent_at < m->unsent_len)
            return false;
        drop_unsent(m);
    }
    m->waiting = 0;
    return true;
}

static bool seal(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    while (bytes.len > 0) {
        size_t sealed = load_tls_seal(thread, user, bytes);
        if (sealed == 0)
            return false;
        bytes = span_skip(bytes, sealed);
    }
    return true;
}

/* Sends frames behind what waits. false: some bytes wait, or the connection is lost. */
static bool send_frames(struct load_thread *thread, struct load_user *user, struct span frames)
{
    struct load_multiplex *m = user->multiplex;
    m->waiting += frames.len;
    thread->tally.portion->outcome.sent_bytes += frames.len;
    if (m->waiting > WAITING_MAX) {
        load_connection_fail(thread, user, LOAD_bad_http2);
        return false;
    }
    if (load_user_has_tls(user))
        return seal(thread, user, frames) && flush(thread, user);
    ssize_t sent = m->unsent ? 0 : send_plain(thread, user, frames);
    if (sent < 0)
        return false;
    if ((size_t)sent < frames.len) {
        (void)keep_unsent(thread, user, span_skip(frames, (size_t)sent));
        return false;
    }
    m->waiting = 0;
    return true;
}

/* ---- requests ---- */

unsigned load_multiplex_limit(const struct load_thread *thread, const struct load_user *user)
{
    unsigned limit = thread->plan->pipeline;
    const struct load_multiplex *m = user->multiplex;
    if (user->connection != LOAD_CONNECTION_OPEN || !m || !m->http2.ready ||
        m->http2.streams_max >= limit)
        return limit;
    return m->http2.streams_max > 0 ? m->http2.streams_max : 1;
}

static void open_streams(struct load_thread *thread, struct load_user *user, struct buf *out)
{
    const struct load_plan *plan = thread->plan;
    struct load_multiplex *m = user->multiplex;
    while (user->sent_count < user->asked_count && load_http2_may_open(&m->http2)) {
        unsigned place = place_of(thread, user, user->sent_count);
        struct load_asked *asked = &user->asked[place];
        const struct load_target *target = &plan->targets[asked->target];
        if (target->origin != user->origin ||
            !load_http2_open(&m->http2, place, target->block, plan->data.len, asked->target, out))
            return;
        m->answers[place] = (struct load_multiplex_answer){ .body_hash = LOAD_ANSWER_HASH };
        if (asked->sent_ns == 0)
            asked->sent_ns = thread->now_ns;
        user->sent_count++;
    }
}

static void send_bodies(struct load_thread *thread, struct load_user *user, struct buf *out)
{
    for (unsigned i = 0; thread->plan->data.len > 0 && i < user->sent_count; i++)
        load_http2_send_body(&user->multiplex->http2, place_of(thread, user, i), thread->plan->data,
                             out);
}

void load_multiplex_transmit(struct load_thread *thread, struct load_user *user)
{
    struct load_multiplex *m = user->multiplex;
    struct buf out;
    do {
        if (!flush(thread, user))
            return;
        out = buf_over(thread->out, LOAD_OUT_SIZE);
        if (!m->begun)
            load_http2_begin(&m->http2, m->streams, thread->plan->pipeline, thread->plan->head,
                             &out);
        m->begun = true;
        open_streams(thread, user, &out);
        send_bodies(thread, user, &out);
    } while (out.len > 0 && send_frames(thread, user, buf_span(&out)));
}

/* Sends the last frames of a connection, unless earlier ones still wait. */
static void send_last(struct load_thread *thread, struct load_user *user, struct span frames)
{
    /* sendmsg does not write through the pointer */
    struct iovec piece = { (void *)(uintptr_t)frames.at, frames.len };
    if (user->multiplex->waiting > 0 || frames.len == 0)
        return;
    ssize_t sent = (ssize_t)frames.len;
    if (!load_user_has_tls(user))
        sent = load_socket_send(user->fd, &piece, 1);
    else if (tls_connection_write(&user->tls->connection, frames) != TLS_DONE)
        return; /* else load_tls_close sends it */
    thread->tally.portion->outcome.sent_bytes += sent > 0 ? (uint64_t)sent : 0;
}

void load_multiplex_end(struct load_thread *thread, struct load_user *user)
{
    char bytes[32];
    struct buf out = buf_over(bytes, sizeof(bytes));
    if (user->connection != LOAD_CONNECTION_OPEN || !user->multiplex->begun)
        return;
    load_http2_end(&out);
    send_last(thread, user, buf_span(&out));
}

/* ---- answers ---- */

static void apply_settings(struct load_thread *thread, const struct load_user *user, bool first)
{
    struct load_outcome *outcome = &thread->tally.portion->outcome;
    unsigned missing = thread->plan->pipeline - load_multiplex_limit(thread, user);
    outcome->settings_changes += !first;
    if (missing > outcome->streams_missing)
        outcome->streams_missing = missing;
}

static void apply_reset(struct load_thread *thread, struct load_user *user, unsigned place,
                        uint32_t code)
{
    struct load_asked *asked = &user->asked[place];
    bool refused = code == HTTP2_REFUSED_STREAM;
    thread->tally.portion->outcome.resets++;
    if (refused && !asked->again) { /* RFC 9113 section 8.7 allows it */
        asked->again = true;
        send_again(thread, user, place);
    } else {
        fail_stream(thread, user, place, refused ? LOAD_stream_refused : LOAD_stream_reset);
    }
}

static void apply_goaway(struct load_thread *thread, struct load_user *user)
{
    struct load_multiplex *m = user->multiplex;
    thread->tally.portion->outcome.goaways++;
    for (unsigned i = user->sent_count; i-- > 0;) {
        unsigned place = place_of(thread, user, i);
        if (load_http2_is_unprocessed(&m->http2, place)) {
            load_http2_forget(&m->http2, place);
            send_again(thread, user, place);
        }
    }
}

/* Applies an event that is neither MORE nor FAILED. false: out of memory. */
static bool apply_event(struct load_thread *thread, struct load_user *user,
                        enum load_frames_event event, const struct load_frames_arrival *arrival)
{
    struct load_multiplex *m = user->multiplex;
    struct load_multiplex_answer *answer = &m->answers[arrival->place];
    switch (event) {
    case LOAD_FRAMES_ANSWER:
        if (answer->first_byte_ns == 0)
            answer->first_byte_ns = thread->now_ns;
        if (arrival->ended)
            end_answer(thread, user, arrival->place);
        break;
    case LOAD_FRAMES_DATA:
        if (thread->plan->verify == LOAD_VERIFY_HASH)
            answer->body_hash = load_answer_hash(answer->body_hash, arrival->data);
        if (arrival->ended)
            end_answer(thread, user, arrival->place);
        break;
    case LOAD_FRAMES_MALFORMED:
        fail_stream(thread, user, arrival->place, LOAD_bad_framing);
        break;
    case LOAD_FRAMES_RESET:
        apply_reset(thread, user, arrival->place, arrival->code);
        break;
    case LOAD_FRAMES_SETTINGS:
        apply_settings(thread, user, arrival->first);
        break;
    case LOAD_FRAMES_GOAWAY:
        apply_goaway(thread, user);
        break;
    case LOAD_FRAMES_PING:
        thread->tally.portion->outcome.pings++;
        break;
    case LOAD_FRAMES_GROW:
        return grow_table(&m->http2.table, arrival->needed);
    case LOAD_FRAMES_MORE:
    case LOAD_FRAMES_FAILED:
        break;
    }
    return true;
}

/* Ends a connection that cannot continue. Returns whether the user's cycle continues. */
static bool fail_connection(struct load_thread *thread, struct load_user *user, struct span goaway,
                            enum load_error error)
{
    send_last(thread, user, goaway);
    if (user->asked_count > 0) {
        load_connection_fail(thread, user, error);
        return false;
    }
    load_tally_error(&thread->tally, error); /* it belongs to no request */
    load_connection_close(user);
    return true;
}

/* Sends frames that answer the server. Returns whether the user's cycle continues. */
static bool reply(struct load_thread *thread, struct load_user *user, struct span frames)
{
    if (frames.len == 0 || send_frames(thread, user, frames) ||
        user->connection == LOAD_CONNECTION_OPEN)
        return true;
    return user->mood == LOAD_ASKING && user->asked_count == 0;
}

/* Closes a connection that takes no further request, once its last stream is closed. Returns
 * whether the user's cycle continues. */
static bool settle(struct load_thread *thread, struct load_user *user)
{
    const struct load_http2 *h = &user->multiplex->http2;
    if (user->connection != LOAD_CONNECTION_OPEN || h->open > 0)
        return true;
    if (h->closing && user->asked_count > 0 && !user->answered && load_http2_got_goaway(h)) {
        load_connection_fail(thread, user, LOAD_goaway); /* a new connection would get one, too */
        return false;
    }
    if (h->closing || (user->asked_count == 0 && !thread->plan->keep_alive))
        load_connection_finish(thread, user);
    return true;
}

bool load_multiplex_read(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    struct load_multiplex *m = user->multiplex;
    struct load_frames_arrival arrival = { 0 };
    struct buf out = buf_over(thread->out, LOAD_OUT_SIZE);
    enum load_frames_event event;
    while ((event = load_frames_read(&m->http2, thread->frames, &bytes, &out, &arrival)) !=
           LOAD_FRAMES_MORE) {
        if (event == LOAD_FRAMES_FAILED)
            return fail_connection(thread, user, buf_span(&out), arrival.error);
        if (!apply_event(thread, user, event, &arrival))
            return fail_connection(thread, user, SPAN(""), LOAD_no_descriptor);
    }
    if ((bytes.len > 0 || user->tail) && !load_answer_keep_tail(user, bytes))
        return fail_connection(thread, user, SPAN(""), LOAD_no_descriptor);
    return reply(thread, user, buf_span(&out)) && settle(thread, user);
}

/* ---- limits ---- */

static enum load_error limit_of(const struct load_thread *thread, const struct load_user *user,
                                unsigned place)
{
    const struct load_plan *plan = thread->plan;
    uint64_t sent_ns = user->asked[place].sent_ns;
    if (user->multiplex->answers[place].first_byte_ns == 0 &&
        load_thread_is_past(thread, sent_ns, plan->first_byte_timeout_ns))
        return LOAD_first_byte_timeout;
    return load_thread_is_past(thread, sent_ns, plan->response_timeout_ns) ? LOAD_response_timeout
                                                                           : LOAD_ERROR_COUNT;
}

bool load_multiplex_check_limits(struct load_thread *thread, struct load_user *user)
{
    struct load_multiplex *m = user->multiplex;
    struct buf out = buf_over(thread->out, LOAD_OUT_SIZE);
    unsigned asked = user->asked_count;
    for (unsigned i = 0; i < user->sent_count;) {
        unsigned place = place_of(thread, user, i);
        enum load_error error = limit_of(thread, user, place);
        if (error == LOAD_ERROR_COUNT) {
            i++;
            continue;
        }
        load_http2_cancel(&m->http2, place, &out);
        fail_stream(thread, user, place, error);
    }
    if (user->sent_count == 0 && user->asked_count > 0 && /* the server allows no stream */
        load_thread_is_past(thread, user->connect_ns, thread->plan->response_timeout_ns)) {
        load_connection_fail(thread, user, LOAD_response_timeout);
        return false;
    }
    return user->asked_count < asked && reply(thread, user, buf_span(&out)) && settle(thread, user);
}
