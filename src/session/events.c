/* SPDX-License-Identifier: MIT */
#include "session/events.h"

#include "base/duration.h"
#include "http2/priority.h"
#include "http2/repeat.h"
#include "session/body.h"
#include "session/exchange.h"
#include "session/frames.h"
#include "session/goodbye.h"
#include "session/http2.h"
#include "session/pending.h"
#include "session/stream.h"
#include "session/tally.h"

#include <stdlib.h>

static void count(const struct session *s, enum stats_counter counter)
{
    stats_writer_add(&s->thread->stats, counter, 1);
}

/* ---- header blocks ---- */

static bool grow_table(struct http2_table *table, size_t size)
{
    char *memory = malloc(size), *earlier = table->memory;
    if (!memory)
        return false;
    http2_table_move(table, memory, size);
    free(earlier);
    return true;
}

/* Decodes a header block. HTTP2_REQUEST_GROW: out of memory. */
static enum http2_request_result decode_block(struct session *s, struct http2_request *request,
                                              struct span block, bool trailers)
{
    struct http2_table *table = &s->http2->table;
    char *storage = s->thread->http2_scratch + HTTP2_BLOCK_MAX;
    http2_request_begin(request, table, block, storage, trailers);
    enum http2_request_result result = http2_request_decode(request);
    while (result == HTTP2_REQUEST_GROW && grow_table(table, request->reader.needed))
        result = http2_request_decode(request);
    return result;
}

/* Ends the connection if the block was not decoded: the table of the peer and ours then differ. */
static void check_decoded(struct session *s, enum http2_request_result result)
{
    if (result == HTTP2_REQUEST_GROW)
        session_goodbye_fail(s, HTTP2_FAULT_INTERNAL);
    else if (result == HTTP2_REQUEST_BROKEN)
        session_goodbye_fail(s, HTTP2_FAULT_COMPRESSION);
}

/* Decodes a block whose fields are not used. */
static void drop_block(struct session *s, struct span block)
{
    struct http2_request request;
    check_decoded(s, decode_block(s, &request, block, false));
}

/* ---- requests ---- */

/* A stream's request, and how it is answered: by a plan, or with the status of a failure. */
struct framed_request {
    const struct http_request *request;
    const char *head;
    struct span line;
    uint64_t began_ns;
    struct session_pending *resumed; /* the request has waited for its answer; or NULL */
    enum http_status status;         /* 0: it is answered by a plan */
    bool body_read;
    bool head_only;
    bool navigates; /* a browser opens a page, and sends no body */
};

/* The answer of the stream is pending. */
static void keep_pending(struct session *s, const struct http2_stream *stream,
                         struct session_pending *pending, bool navigates)
{
    struct session_http2 *h = s->http2;
    const uint64_t limit_ns = session_pending_limit_ns(pending);
    session_http2_place(h, stream)->pending = pending;
    session_http2_place(h, stream)->navigates = navigates;
    if (s->pending_count == 1 || limit_ns < h->pending_ns)
        h->pending_ns = limit_ns;
}

/* Returns the request if its answer is pending, or NULL. */
static struct session_pending *answer_framed(struct session *s, struct http2_stream *stream,
                                             const struct framed_request *from)
{
    struct session_buffer *scratch = session_buffer_take(s->thread);
    if (!scratch) {
        session_frames_reset(s, stream, HTTP2_FAULT_INTERNAL);
        return NULL;
    }
    struct session_framing framing = { .stream = stream, .navigates = from->navigates };
    struct session_exchange x = session_exchange_begin(s, from->began_ns, from->resumed);
    x.out = scratch;
    x.framing = &framing;
    x.request_line = from->line;
    x.head_only = from->head_only;
    x.body_read = from->body_read;
    x.resumed = from->resumed;
    x.fetches = from->resumed != NULL;
    if (from->status != 0)
        session_exchange_fail_framed(&x, from->status);
    else
        session_exchange_answer_framed(&x, from->request, from->head);
    if (__builtin_expect(x.pending != NULL, 0))
        keep_pending(s, stream, x.pending, from->navigates);
    else if (!framing.done)
        session_frames_add_answer(&x);
    session_buffer_give(s->thread, scratch);
    return x.pending;
}

/* The log shows the version that the client speaks. */
static struct span with_version(struct span line)
{
    if (span_ends(line, SPAN("HTTP/1.1")))
        memcpy((char *)(uintptr_t)line.at + line.len - 3, "2.0", 3);
    return line;
}

/* The first line of a decoded head that is not parsed, or an empty one. */
static struct span first_line(struct span text)
{
    const char *end = text.len > 0 ? memchr(text.at, '\r', text.len) : NULL;
    return with_version(span_first(text, end ? (size_t)(end - text.at) : 0));
}

/* ---- requests that wait for their body ---- */

/* A request waits for the end of its body, which may turn out too large. The body needs no answer
 * before: HTTP/2 has no pipelining. `length` is that of Content-Length. False: the request is
 * answered at once, and the client is asked to send no more (RFC 9113 section 8.1). */
static bool keep_request(struct session *s, struct http2_stream *stream, uint64_t length,
                         struct framed_request *from)
{
    struct session_http2 *h = s->http2;
    const struct session_shared *shared = s->thread->shared;
    const uint64_t now_ns = s->thread->now_ns;
    const bool known = length != HTTP2_REQUEST_NO_LENGTH;
    if (from->status != 0 || http_request_has(from->request, HTTP_FIELD_EXPECT))
        return false;
    if (known && length > HTTP_BODY_MAX) {
        session_tally_fault(s->thread, HTTP_FAULT_BODY_LENGTH);
        from->status = HTTP_CONTENT_TOO_LARGE;
        return false;
    }
    const size_t len = from->request->head_len;
    const struct http_body framing = { .kind = known ? HTTP_BODY_LENGTH : HTTP_BODY_CLOSE,
                                       .remaining = known ? length : 0 };
    struct session_body *body =
        h->waiting_bytes + len > SESSION_INPUT_MAX
            ? NULL
            : session_body_new(framing, from->request, from->head, from->began_ns);
    if (!body)
        return false;
    session_http2_place(h, stream)->body = body;
    h->waiting_bytes += len;
    body->limit_ns = now_ns + shared->body_timeout_ns;
    if (h->bodies++ == 0) {
        h->body_bytes = 0;
        h->body_limit_ns = body->limit_ns;
        h->body_due_ns = shared->body_rate_bytes > 0 ? now_ns + SESSION_BODY_RATE_NS : UINT64_MAX;
    }
    return true;
}

/* A block of several frames is joined in scratch memory, where the next one may be joined, too. */
static enum http_parse parse_head(const struct session *s, struct span block,
                                  struct http2_repeat *last, enum http_status *ret_status)
{
    last->parsed = (struct http_request){ 0 };
    enum http_parse result = http_request_parse(&last->parsed, last->decoded.text, ret_status);
    last->usable = result == HTTP_PARSED && block.at != s->thread->http2_scratch;
    return result;
}

static void take_head(struct session *s, const struct http2_arrival *arrival,
                      struct http2_repeat *last, bool parsed, uint64_t began_ns)
{
    const struct http2_request *decoded = &last->decoded;
    const struct http_request *request = &last->parsed;
    struct http2_stream *stream = arrival->stream;
    enum http_status status = HTTP_BAD_REQUEST;
    const char *head = decoded->text.at;
    struct framed_request from = {
        .request = request, .head = head, .began_ns = began_ns, .navigates = decoded->navigates
    };
    if (parsed || parse_head(s, arrival->block, last, &status) == HTTP_PARSED) {
        from.line = with_version(span_of(head + request->line.at, request->line.len));
        /* As for an absolute target with such a scheme in HTTP/1.1. */
        if (decoded->scheme == HTTP2_SCHEME_OTHER) {
            session_tally_fault(s->thread, HTTP_FAULT_TARGET_FORM);
            from.head_only = request->method == HTTP_HEAD;
            from.status = HTTP_BAD_REQUEST;
        }
    } else {
        session_tally_fault(s->thread, (enum http_fault)request->fault);
        from.line = span_of(head + request->line.at, request->line.len);
        from.head_only = request->method == HTTP_HEAD;
        from.status = status;
    }
    if (arrival->end || !keep_request(s, stream, decoded->content_length, &from))
        (void)answer_framed(s, stream, &from);
}

static void prioritise(struct session *s, struct http2_stream *stream, struct span field)
{
    struct http2_priority priority;
    if (field.len > 0 && http2_priority_read(field, &priority))
        http2_connection_prioritise(&s->http2->connection, stream, priority);
}

/* A request whose body has another length than it announces is malformed (RFC 9113 section
 * 8.1.1). */
static bool is_too_short(const struct http2_arrival *arrival, const struct http2_request *request)
{
    return arrival->end && request->content_length != HTTP2_REQUEST_NO_LENGTH &&
           request->content_length > 0;
}

static void take_request(struct session *s, const struct http2_arrival *arrival,
                         struct http2_repeat *last, uint64_t began_ns)
{
    struct http2_stream *stream = arrival->stream;
    const struct http2_request *request = &last->decoded;
    session_tally_set_active(s, true);
    count(s, STATS_http2_streams_opened);
    session_http2_place(s->http2, stream)->open = true;
    const bool parsed = http2_repeat_read(last, arrival->block);
    enum http2_request_result result =
        parsed ? HTTP2_REQUEST_DECODED : decode_block(s, &last->decoded, arrival->block, false);
    switch (result) {
    case HTTP2_REQUEST_DECODED:
        if (is_too_short(arrival, request)) {
            session_frames_reset(s, stream, HTTP2_FAULT_MALFORMED);
            return;
        }
        prioritise(s, stream, request->priority);
        take_head(s, arrival, last, parsed, began_ns);
        return;
    case HTTP2_REQUEST_MALFORMED:
        session_frames_reset(s, stream, HTTP2_FAULT_MALFORMED);
        return;
    case HTTP2_REQUEST_TOO_LARGE:
        session_tally_fault(s->thread, HTTP_FAULT_HEAD_LENGTH);
        (void)answer_framed(
            s, stream,
            &(struct framed_request){ .line = first_line(request->text),
                                      .began_ns = began_ns,
                                      .status = HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE });
        return;
    case HTTP2_REQUEST_GROW:
    case HTTP2_REQUEST_BROKEN:
        check_decoded(s, result);
        return;
    }
}

/* ---- bodies of requests ---- */

/* Answers a request that has waited for its body. `status` 0: the body has ended well. */
static void answer_waiting(struct session *s, struct http2_stream *stream, enum http_status status)
{
    struct session_http2 *h = s->http2;
    struct session_body *body = session_http2_take_body(h, session_http2_place(h, stream));
    const struct session_waiting *waiting = body->waiting;
    const struct framed_request from = {
        .request = &waiting->request,
        .head = waiting->head,
        .line = span_of(waiting->head + waiting->request.line.at, waiting->request.line.len),
        .began_ns = waiting->began_ns,
        .head_only = waiting->request.method == HTTP_HEAD,
        .status = status,
    };
    (void)answer_framed(s, stream, &from);
    session_body_free(body);
}

/* The answer is under way or complete, and the client still sends. A client that has read the
 * status stops. One that does not stop could keep the connection busy as long as the answer lasts.
 */
static void discard_body(struct session *s, struct http2_stream *stream, size_t len, bool end)
{
    struct session_http2_place *place = session_http2_place(s->http2, stream);
    place->discarded += (uint32_t)len;
    const bool much = place->discarded > HTTP_BODY_MAX;
    if (place->lingers > 0 && (end || much))
        session_frames_end(s, stream);
    else if (much && !end)
        session_frames_reset(s, stream, HTTP2_FAULT_BODY_LENGTH);
}

/* The client has sent `len` bytes of a request's body, or the end of it. */
static void take_body(struct session *s, struct http2_stream *stream, size_t len, bool end)
{
    struct session_http2 *h = s->http2;
    struct session_body *body = session_http2_place(h, stream)->body;
    if (!body) {
        discard_body(s, stream, len, end);
        return;
    }
    struct http_body *framing = &body->framing;
    framing->total += len;
    h->body_bytes += len;
    const bool known = framing->kind == HTTP_BODY_LENGTH;
    if (known &&
        (framing->total > framing->remaining || (end && framing->total < framing->remaining))) {
        session_frames_reset(s, stream, HTTP2_FAULT_MALFORMED);
    } else if (framing->total > HTTP_BODY_MAX) {
        session_tally_fault(s->thread, HTTP_FAULT_BODY_LENGTH);
        answer_waiting(s, stream, HTTP_CONTENT_TOO_LARGE);
    } else if (end) {
        answer_waiting(s, stream, (enum http_status)0);
    }
}

static void take_trailers(struct session *s, const struct http2_arrival *arrival)
{
    struct http2_request request;
    enum http2_request_result result = decode_block(s, &request, arrival->block, true);
    switch (result) {
    case HTTP2_REQUEST_DECODED:
    case HTTP2_REQUEST_TOO_LARGE:
        take_body(s, arrival->stream, 0, true);
        return;
    case HTTP2_REQUEST_MALFORMED:
        session_frames_reset(s, arrival->stream, HTTP2_FAULT_MALFORMED);
        return;
    case HTTP2_REQUEST_GROW:
    case HTTP2_REQUEST_BROKEN:
        check_decoded(s, result);
        return;
    }
}

/* ---- events ---- */

static void take_reset(struct session *s, const struct http2_arrival *arrival)
{
    struct session_http2 *h = s->http2;
    const unsigned number = http2_stream_place(&h->streams->table, arrival->stream);
    if (arrival->fault == HTTP2_FAULT_NONE)
        count(s, STATS_http2_resets_received);
    else
        session_tally_http2_reset(&s->thread->stats, (enum http2_fault)arrival->fault);
    if (h->streams->place[number].open)
        session_http2_forget(s, number);
    if (arrival->block.len > 0)
        drop_block(s, arrival->block);
}

/* False: no further event can be taken now. */
static bool take_event(struct session *s, enum http2_event event,
                       const struct http2_arrival *arrival, struct http2_repeat *last,
                       uint64_t began_ns)
{
    /* Other events may decode a block. */
    last->usable = last->usable && (event == HTTP2_REQUEST || event == HTTP2_DATA);
    switch (event) {
    case HTTP2_MORE:
        return false;
    case HTTP2_FULL:
        s->http2->full = true;
        return false;
    case HTTP2_REQUEST:
        take_request(s, arrival, last, began_ns);
        break;
    case HTTP2_TRAILERS:
        take_trailers(s, arrival);
        break;
    case HTTP2_DATA:
        take_body(s, arrival->stream, arrival->data.len, arrival->end);
        break;
    case HTTP2_RESET:
        take_reset(s, arrival);
        break;
    case HTTP2_DROP:
        if (arrival->fault == HTTP2_FAULT_REFUSED)
            session_tally_http2_reset(&s->thread->stats, HTTP2_FAULT_REFUSED);
        drop_block(s, arrival->block);
        break;
    case HTTP2_GOAWAY:
        break;
    case HTTP2_FAILED:
        session_goodbye_after_failure(s);
        break;
    }
    return !s->closing;
}

static bool has_frame_room(const struct session *s)
{
    const struct session_buffer *out = s->output;
    return out->len + SESSION_FRAMES_ROOM <= SESSION_BUFFER_BYTES &&
           session_buffer_end(out) + SESSION_FRAMES_ROOM <= s->http2->output_max &&
           out->group_count < SESSION_GROUPS_MAX;
}

void session_events_take(struct session *s, struct span *in, struct session_arrival *began)
{
    struct session_http2 *h = s->http2;
    struct session_buffer *out = s->output;
    struct http2_repeat last;
    last.usable = false;
    h->full = false;
    for (;;) {
        if (!has_frame_room(s)) {
            h->full = in->len > 0;
            return;
        }
        struct http2_arrival arrival;
        struct buf buf = buf_over(out->bytes + out->len, SESSION_BUFFER_BYTES - out->len);
        enum http2_event event =
            http2_connection_read(&h->connection, in, &buf, s->thread->http2_scratch, &arrival);
        out->len += buf.len;
        if (!take_event(s, event, &arrival, &last, began->first_ns))
            return;
        began->first_ns = began->rest_ns;
    }
}

static void resume_stream(struct session *s, unsigned number)
{
    struct session_http2 *h = s->http2;
    struct session_pending *waited = h->streams->place[number].pending;
    const struct http_request *request = &waited->request;
    const struct framed_request from = {
        .request = request,
        .head = waited->head,
        .line = span_of(waited->head + request->line.at, request->line.len),
        .began_ns = waited->began_ns,
        .resumed = waited,
        .body_read = waited->body_read,
        .head_only = request->method == HTTP_HEAD,
        .navigates = h->streams->place[number].navigates,
    };
    h->streams->place[number].pending = NULL;
    session_pending_stop(s, waited);
    if (answer_framed(s, &h->streams->table.stream[number], &from) != waited)
        session_pending_drop(s, &waited);
}

void session_events_resume(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    h->pending_ns = UINT64_MAX;
    for (unsigned i = 1; i <= HTTP2_STREAMS_MAX; i++) {
        struct session_pending *pending = h->streams->place[i].pending;
        const struct session_stream *body = h->streams->place[i].answer;
        if (body && body->answer.pages)
            session_frames_resume(s, i, now_ns);
        if (!pending)
            continue;
        const uint64_t limit_ns = session_pending_limit_ns(pending);
        if (now_ns >= limit_ns)
            session_pending_give_up(s, pending);
        else if (limit_ns < h->pending_ns)
            h->pending_ns = limit_ns;
        if (session_pending_is_over(s, pending) && has_frame_room(s))
            resume_stream(s, i);
    }
}

/* Until the output has space for the answers to more late bodies. */
#define RETRY_NS (20 * DURATION_MS)

void session_events_expire(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    const bool slow = now_ns >= h->body_due_ns;
    bool any_left = false;
    h->body_limit_ns = UINT64_MAX;
    for (unsigned i = 1; i <= HTTP2_STREAMS_MAX; i++) {
        struct session_http2_place *place = &h->streams->place[i];
        if (!place->body)
            continue;
        const bool is_due = slow || place->body->limit_ns <= now_ns;
        if (!is_due || !has_frame_room(s)) {
            const uint64_t next_ns = is_due ? now_ns + RETRY_NS : place->body->limit_ns;
            if (next_ns < h->body_limit_ns)
                h->body_limit_ns = next_ns;
            any_left = any_left || is_due;
            continue;
        }
        count(s, STATS_timeouts_body);
        answer_waiting(s, &h->streams->table.stream[i], HTTP_REQUEST_TIMEOUT);
    }
    if (slow && any_left)
        h->body_due_ns = now_ns + RETRY_NS;
}
