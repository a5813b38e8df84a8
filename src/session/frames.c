/* SPDX-License-Identifier: MIT
 *
 * The head of a DATA frame and its payload have 16 KiB together, so that a frame fills a TLS
 * record. The output is sealed from its front in pieces of that size. A frame that begins within
 * such a piece ends with it, so the frames behind it are aligned with the records again.
 *
 * The payload of a large frame is a loan. Its memory belongs to an entry of the cache. Or it has
 * bytes of a file that the thread has read, and that TLS seals in the same call.
 */
#include "session/frames.h"

#include "http2/frame.h"
#include "http2/response.h"
#include "session/body.h"
#include "session/head.h"
#include "session/http2.h"
#include "session/line.h"
#include "session/pages.h"
#include "session/ready.h"
#include "session/recent.h"
#include "session/stream.h"
#include "session/tally.h"

enum {
    HEAD = HTTP2_FRAME_HEAD,
    /* A DATA frame that ends with a record has at least this many bytes. */
    DATA_LEAST = 1024,
    RESET_ROOM = 16 /* a reset may follow a frame */
};

/* A stream lingers for one to two of these times. */
#define LINGER_NS UINT64_C(1000000000)

static struct buf free_end(struct session_buffer *out)
{
    return buf_over(out->bytes + out->len, SESSION_BUFFER_BYTES - out->len);
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void write_frame(char *at, unsigned type, unsigned flags, uint32_t stream, size_t payload)
{
    http2_frame_write(at, (struct http2_frame){ .length = (uint32_t)payload,
                                                .stream = stream,
                                                .type = (uint8_t)type,
                                                .flags = (uint8_t)flags });
}

static bool has_reset_room(const struct session_buffer *out)
{
    return out->len + RESET_ROOM <= SESSION_BUFFER_BYTES;
}

/* ---- the end of an answer ---- */

void session_frames_reset(struct session *s, struct http2_stream *stream, unsigned fault)
{
    struct session_http2 *h = s->http2;
    const unsigned place = http2_stream_place(&h->streams->table, stream);
    struct buf buf = free_end(s->output);
    http2_connection_reset(&h->connection, &buf, stream, (enum http2_fault)fault);
    s->output->len += buf.len;
    session_tally_http2_reset(&s->thread->stats, (enum http2_fault)fault);
    session_http2_forget(s, place);
}

void session_frames_end(struct session *s, struct http2_stream *stream)
{
    struct session_http2 *h = s->http2;
    const unsigned place = http2_stream_place(&h->streams->table, stream);
    struct buf buf = free_end(s->output);
    http2_connection_end(&h->connection, &buf, stream);
    s->output->len += buf.len;
    session_http2_forget(s, place);
}

/* The answer is complete, and the client still sends its request. A reset directly behind the
 * answer would make some clients drop it: curl 7.88 reads all that has arrived, and finds the
 * stream closed. So the rest of the request is discarded for a while, as HTTP/1.1 does. */
static void linger(struct session *s, struct http2_stream *stream)
{
    struct session_http2 *h = s->http2;
    http2_connection_finish(&h->connection, stream);
    session_http2_place(h, stream)->lingers = 1;
    if (h->lingering++ == 0)
        h->linger_ns = s->thread->now_ns + LINGER_NS;
}

void session_frames_expire_lingering(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    for (unsigned i = 1; i <= HTTP2_STREAMS_MAX && h->lingering > 0; i++) {
        struct session_http2_place *place = &h->streams->place[i];
        if (place->lingers > 1 && has_reset_room(s->output))
            session_frames_end(s, &h->streams->table.stream[i]);
        else if (place->lingers > 0)
            place->lingers = 2;
    }
    h->linger_ns = now_ns + LINGER_NS;
}

/* END_STREAM is in the output. */
static void end_answer(struct session *s, struct http2_stream *stream, uint64_t began_ns,
                       unsigned site)
{
    session_tally_ends(s->output, began_ns, site);
    if (__builtin_expect(stream->ended, 1))
        session_frames_end(s, stream);
    else
        linger(s, stream);
}

/* The whole answer is in the output. */
static void end_whole(struct session_exchange *x, unsigned status, uint64_t body_bytes)
{
    const unsigned site = session_answer_site(x);
    session_tally_answer(&x->thread->stats, site, status, body_bytes);
    session_recent_staged(x, status, body_bytes);
    session_line_log(x, status, body_bytes);
    end_answer(x->session, x->framing->stream, x->began_ns, site);
}

/* ---- heads ---- */

/* The first block of a connection says that no dynamic table is used. */
static void begin_block(const struct session_http2 *h, struct buf *block)
{
    block->len = HEAD;
    if (__builtin_expect(!h->began_block, 0))
        http2_hpack_add_no_table(block);
}

/* A frame with a block is in the output. */
static void add_block(struct session_exchange *x, const struct buf *block, bool end)
{
    write_frame(block->at, HTTP2_FRAME_HEADERS,
                HTTP2_FRAME_END_HEADERS | (end ? HTTP2_FRAME_END_STREAM : 0),
                x->framing->stream->id, block->len - HEAD);
    x->session->output->len += block->len;
    x->session->http2->began_block = true;
}

/* Appends a whole body. `entry` lends it; NULL: it is copied. */
static void add_body(struct session_exchange *x, struct span body, struct site_entry *entry)
{
    struct session_buffer *out = x->session->output;
    char *at = out->bytes + out->len;
    write_frame(at, HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, x->framing->stream->id, body.len);
    out->len += HEAD;
    if (entry) {
        session_buffer_lend(out, body, entry);
    } else {
        memcpy(at + HEAD, body.at, body.len);
        out->len += body.len;
    }
    http2_connection_spend(&x->session->http2->connection, x->framing->stream, (uint32_t)body.len);
}

static bool has_ready_block(const struct session_exchange *x, const struct site_file *file)
{
    return !file->open && file->block_len > 0 && file->size <= SESSION_COPY_MAX && !x->by_accept &&
           x->origin_line.len == 0 && !x->dictionary_line && !session_head_only(x) &&
           file->size <=
               http2_connection_allows(&x->session->http2->connection, x->framing->stream);
}

/* The fields that the site adds to every answer. */
static void add_site_fields(const struct session_exchange *x, struct buf *block)
{
    if (x->secure)
        buf_add(block, x->site->fields.block_over_tls);
    buf_add(block, x->site->fields.block);
}

/* The free end of the output, with a frame head and what a first block begins with. */
static struct buf begin_frames(const struct session *s)
{
    struct buf frames = free_end(s->output);
    frames.size -= frames.size < RESET_ROOM ? frames.size : RESET_ROOM;
    begin_block(s->http2, &frames);
    return frames;
}

bool session_frames_add_bodiless(struct session_exchange *x,
                                 const struct session_ready_answer *ready, struct span location)
{
    static const struct span name = SPAN("Location: "), end = SPAN("\r\n");
    const struct session_thread *thread = x->thread;
    if (x->by_accept || x->origin_line.len > 0)
        return false;
    struct buf frames = begin_frames(x->session);
    buf_add(&frames, ready->status_block);
    buf_add(&frames, span_skip(span_of(thread->block_prefix, thread->block_prefix_len),
                               thread->block_prefix_len - HTTP2_RESPONSE_DATE_BYTES));
    add_site_fields(x, &frames);
    buf_add(&frames, ready->front_block);
    if (location.len == 0)
        buf_add(&frames, ready->location_block);
    else
        http2_response_add_location(
            &frames, span_of(location.at + name.len, location.len - name.len - end.len));
    buf_add(&frames, ready->back_block);
    if (frames.overflow)
        return false;
    add_block(x, &frames, true);
    session_tally_begun(x);
    x->framing->done = true;
    end_whole(x, ready->status, 0);
    return true;
}

bool session_frames_add_ready(struct session_exchange *x, struct site_entry *entry,
                              const struct site_file *file)
{
    struct session *s = x->session;
    struct session_buffer *out = s->output;
    if (!has_ready_block(x, file))
        return false;
    const size_t len = (size_t)file->size;
    const bool lends = session_buffer_lends(out, len);
    struct buf frames = begin_frames(s);
    buf_add(&frames, span_of(x->thread->block_prefix, x->thread->block_prefix_len));
    add_site_fields(x, &frames);
    buf_add(&frames, site_file_block(file));
    if (frames.overflow || buf_room(&frames) < HEAD + (lends ? 0 : len))
        return false;
    if (lends && session_buffer_end(out) + frames.len + HEAD + len > s->http2->output_max)
        return false;
    add_block(x, &frames, len == 0);
    session_tally_begun(x);
    if (len > 0)
        add_body(x, span_of(site_file_body(file), len), lends ? entry : NULL);
    x->framing->done = true;
    end_whole(x, HTTP_OK, len);
    return true;
}

size_t session_frames_copy_max(const struct session_exchange *x)
{
    const struct session_http2 *h = x->session->http2;
    const struct session_buffer *out = x->session->output;
    const size_t bytes = SESSION_BUFFER_BYTES - out->len;
    const size_t batch = h->output_max - session_buffer_end(out);
    const size_t room = smaller_of(bytes, batch) - SESSION_ANSWER_ROOM;
    return smaller_of(smaller_of(room, SESSION_COPY_MAX),
                      http2_connection_allows(&h->connection, x->framing->stream));
}

/* The text of the answer, behind its head. */
static struct span split_head(struct span text, struct span *ret_head)
{
    const char *end = memmem(text.at, text.len, "\r\n\r\n", 4);
    CHECK(end != NULL);
    const size_t len = (size_t)(end - text.at) + 4;
    *ret_head = span_first(text, len);
    return span_skip(text, len);
}

/* Appends HEADERS, with a block that is made from a head of HTTP/1.1. */
static void add_head(struct session_exchange *x, struct span head, bool end)
{
    struct buf block = free_end(x->session->output);
    begin_block(x->session->http2, &block);
    http2_response_add_head(&block, head);
    CHECK(!block.overflow);
    add_block(x, &block, end);
}

/* A block has fewer bytes than its head as text, also with the head of its frame. */
bool session_frames_add_interim(struct session_exchange *x, struct span head)
{
    const struct session_buffer *out = x->session->output;
    const size_t needed = head.len + SESSION_FRAMES_ROOM;
    if (out->len + needed > SESSION_BUFFER_BYTES ||
        session_buffer_end(out) + needed > x->session->http2->output_max)
        return false;
    add_head(x, head, false);
    return true;
}

/* ---- bodies ---- */

void session_frames_add_answer(struct session_exchange *x)
{
    struct session *s = x->session;
    struct session_http2 *h = s->http2;
    struct session_http2_place *place = session_http2_place(h, x->framing->stream);
    session_tally_begun(x);
    struct span head;
    const bool open = x->out->answer.open;
    const struct span body = split_head(span_of(x->out->bytes, x->out->len), &head);
    add_head(x, head, body.len == 0 && !open);
    if (!open && body.len <= http2_connection_allows(&h->connection, x->framing->stream)) {
        if (body.len > 0)
            add_body(x, body, NULL);
        end_whole(x, x->framing->status, x->framing->body_bytes);
        return;
    }
    place->answer = session_stream_new(x, body);
    if (!place->answer) {
        session_frames_reset(s, x->framing->stream, HTTP2_FAULT_INTERNAL);
        return;
    }
    if (h->answers++ == 0 || place->answer->due_ns < h->scan_ns)
        h->scan_ns = place->answer->due_ns;
    http2_connection_want(&h->connection, x->framing->stream);
}

/* The bytes that `used` leaves of `size`, without those that a DATA frame needs beside its payload.
 * A few bytes are none: a small frame costs as much as a large one. */
static size_t payload_room(size_t used, size_t size)
{
    used += HEAD + RESET_ROOM;
    return used + DATA_LEAST <= size ? size - used : 0;
}

/* The bytes that the next DATA frame may have, if they are lent; 0: none. */
static size_t frame_space(const struct session *s, size_t allowed)
{
    const size_t end = session_buffer_end(s->output);
    size_t most = TLS_RECORD_BYTES - end % TLS_RECORD_BYTES;
    if (most < HEAD + DATA_LEAST)
        most += TLS_RECORD_BYTES;
    most = smaller_of(most - HEAD, HTTP2_PAYLOAD_MAX);
    most = smaller_of(most, payload_room(end, s->http2->output_max));
    return smaller_of(most, allowed);
}

static void note_stream_progress(const struct session *s, struct session_stream *stream, size_t len)
{
    const struct session_shared *shared = s->thread->shared;
    stream->progress_bytes += (uint32_t)len;
    if (stream->progress_bytes < shared->send_step_bytes)
        return;
    stream->progress_bytes = 0;
    stream->stalled = false;
    stream->due_ns = s->thread->now_ns + shared->send_timeout_ns;
}

/* Finds the payload of the stream's next frame where it is, at most `space` bytes, and its owner,
 * NULL for bytes of a file. An empty span: the payload must be copied. */
static struct span find_payload(struct session *s, struct http2_stream *stream, size_t space,
                                struct session_ahead *ahead, struct site_entry **ret_owner)
{
    const struct session_http2 *h = s->http2;
    struct session_stream *answer = session_http2_place(h, stream)->answer;
    if (!session_buffer_lends(s->output, space))
        return span_of(NULL, 0);
    *ret_owner = answer->answer.entry;
    const struct span memory = session_stream_lend(answer, space);
    if (memory.len > 0 || !h->sealing)
        return memory;
    /* Answers that take turns would each read for frames that others send. */
    const bool alone = h->answers == 1 || !stream->incremental;
    const size_t room = payload_room(session_buffer_end(s->output), h->output_max);
    const size_t window = http2_connection_window(&h->connection, stream);
    *ret_owner = NULL;
    return session_stream_lend_file(answer, s->thread, ahead, space,
                                    alone ? smaller_of(room, window) : space);
}

/* The answer's last byte is in a frame. */
static void end_stream(struct session *s, struct http2_stream *stream)
{
    struct session_http2_place *place = session_http2_place(s->http2, stream);
    struct session_stream *answer = place->answer;
    const uint64_t began_ns = answer->began_ns;
    const unsigned site = answer->answer.site;
    place->answer = NULL;
    s->http2->answers--;
    session_buffer_keep(s->output, &answer->answer);
    session_line_keep(s->output, &answer->answer);
    session_stream_free(s->thread, answer);
    end_answer(s, stream, began_ns, site);
}

/* The stream rests until the pages of its file are in memory. */
static void await_pages(struct session *s, struct http2_stream *stream)
{
    struct session_http2 *h = s->http2;
    struct session_answer *answer = &session_http2_place(h, stream)->answer->answer;
    const bool first = s->pending_count == 0;
    session_pages_wait(s, answer, s->thread->now_ns);
    if (!answer->pages)
        return;
    http2_connection_rest(&h->connection, stream);
    const uint64_t due_ns = session_pages_due_ns(answer);
    if (first || due_ns < h->pending_ns)
        h->pending_ns = due_ns;
}

void session_frames_resume(struct session *s, unsigned number, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    struct http2_stream *stream = &h->streams->table.stream[number];
    struct session_answer *answer = &h->streams->place[number].answer->answer;
    bool late;
    if (session_pages_is_over(s, answer, now_ns, &late) && !late)
        http2_connection_want(&h->connection, stream);
    else if (late && has_reset_room(s->output))
        session_frames_reset(s, stream, HTTP2_FAULT_INTERNAL);
    else if (session_pages_due_ns(answer) < h->pending_ns)
        h->pending_ns = session_pages_due_ns(answer);
}

/* Appends one DATA frame of the stream. False: the output has no space for it. */
static bool add_data(struct session *s, struct http2_stream *stream, size_t space,
                     struct session_ahead *ahead)
{
    struct session_buffer *out = s->output;
    struct session_stream *answer = session_http2_place(s->http2, stream)->answer;
    char *at = out->bytes + out->len;
    const size_t room = payload_room(out->len, SESSION_BUFFER_BYTES);
    if (room == 0)
        return false;
    if (__builtin_expect(session_stream_lacks_pages(answer, s->thread), 0)) {
        await_pages(s, stream);
        return true;
    }
    struct site_entry *owner = NULL;
    const struct span lent = find_payload(s, stream, space, ahead, &owner);
    long len = (long)lent.len;
    if (lent.len == 0)
        len = session_stream_read(answer, s->thread, at + HEAD, smaller_of(space, room));
    if (len < 0) { /* the file has changed */
        session_frames_reset(s, stream, HTTP2_FAULT_INTERNAL);
        return true;
    }
    const bool end = session_stream_is_done(answer);
    write_frame(at, HTTP2_FRAME_DATA, end ? HTTP2_FRAME_END_STREAM : 0, stream->id, (size_t)len);
    out->len += HEAD;
    if (lent.len > 0)
        session_buffer_lend(out, lent, owner);
    else
        out->len += (size_t)len;
    http2_connection_spend(&s->http2->connection, stream, (uint32_t)len);
    note_stream_progress(s, answer, (size_t)len);
    if (end)
        end_stream(s, stream);
    return true;
}

void session_frames_add_bodies(struct session *s)
{
    struct session_http2 *h = s->http2;
    struct session_ahead ahead = { 0 };
    if (h->answers == 0)
        return;
    while (s->output->group_count < SESSION_GROUPS_MAX) {
        struct http2_stream *stream = http2_connection_next(&h->connection);
        size_t space = stream ? frame_space(s, http2_connection_allows(&h->connection, stream)) : 0;
        if (space == 0 || !add_data(s, stream, space, &ahead))
            return;
    }
}

void session_frames_expire(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    h->scan_ns = UINT64_MAX;
    for (unsigned i = 1; i <= HTTP2_STREAMS_MAX; i++) {
        struct session_stream *answer = h->streams->place[i].answer;
        struct http2_stream *stream = &h->streams->table.stream[i];
        if (!answer)
            continue;
        const bool closed = stream->window <= 0;
        const bool room = has_reset_room(s->output);
        if (answer->due_ns <= now_ns && closed && answer->stalled && room) {
            session_frames_reset(s, stream, HTTP2_FAULT_STALLED);
            continue;
        }
        if (answer->due_ns <= now_ns) {
            answer->stalled = closed;
            answer->due_ns = now_ns + s->thread->shared->send_timeout_ns;
        }
        if (answer->due_ns < h->scan_ns)
            h->scan_ns = answer->due_ns;
    }
}
