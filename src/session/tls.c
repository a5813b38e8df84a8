/* SPDX-License-Identifier: MIT
 *
 * Input. One feed decrypts all that has arrived before HTTP/1.1 takes it, so that all answers to
 * one read leave in as few records as they fill. OpenSSL keeps an unfinished record itself.
 * Encrypted bytes are kept here only while output waits to be sent.
 *
 * Output. The head and a small body become one record. A large body becomes full records, sealed
 * where the cache has it; a file is read into memory of the thread first. At most
 * SESSION_BATCH_BYTES are sealed at a time. The next bytes are sealed when these are sent, so
 * nothing is sealed twice, and a slow client costs no more memory than that. Answers are counted
 * when their last record is sent.
 */
#include "session/tls.h"

#include "session/answer.h"
#include "session/buffer.h"
#include "session/exchange.h"
#include "session/http1.h"
#include "session/http2.h"
#include "session/pages.h"
#include "session/pending.h"
#include "session/proxy.h"
#include "session/tally.h"
#include "session/thread.h"
#include "tls/server.h"

#include <stdlib.h>

/* The most pieces of plaintext in a record. With more, the record is shorter. */
enum { RECORD_PIECES = 12 };

/* ---- beginning and end ---- */

/* False: out of memory. */
static bool begin_tls(struct session *s, uint64_t now_ns)
{
    struct session_tls *t = calloc(1, sizeof(*t));
    SSL *ssl = t ? tls_server_accept(s->thread->shared->tls) : NULL;
    if (!ssl || !tls_connection_open(&t->connection, ssl, &s->thread->tls_chunks)) {
        free(t);
        return false;
    }
    t->began_ns = now_ns;
    s->tls = t;
    s->phase = SESSION_HANDSHAKE;
    s->deadline_ns = now_ns + s->thread->shared->header_timeout_ns;
    return true;
}

/* Each call from outside begins with it, because the session may have moved to another thread. */
static struct session_tls *enter_tls(struct session *s)
{
    s->tls->connection.chunks = &s->thread->tls_chunks;
    return s->tls;
}

void session_tls_close(struct session *s)
{
    struct session_tls *t = enter_tls(s);
    if (!t->established)
        session_tally_handshake_failed(s, t->connection.error);
    tls_connection_close(&t->connection);
    free(t->kept);
    free(t);
    s->tls = NULL;
}

bool session_tls_has_output(const struct session *s)
{
    return !tls_wire_is_empty(&s->tls->connection.wire);
}

/* ---- sealing ---- */

/* Adds bytes of a file to a record's plaintext. The last bytes of the range are added only when the
 * file has not changed, so a body that mixes two versions is never completed. */
static bool add_file_bytes(struct session_thread *thread, struct session_buffer *out, char *to,
                           size_t size, size_t *len)
{
    const uint64_t left = out->answer.file_end - out->answer.file_at;
    const uint64_t ready = session_pages_ready(thread, &out->answer);
    const size_t part = ready < size - *len ? (size_t)ready : size - *len;
    if (part == 0)
        return true;
    if (site_file_read(out->answer.file, to + *len, part, out->answer.file_at) < 0 ||
        (part == left && !site_file_unchanged(out->answer.file)))
        return false;
    *len += part;
    return true;
}

/* Appends a piece, unless it is empty. */
static unsigned add_piece(struct span *pieces, unsigned count, struct span piece)
{
    pieces[count] = piece;
    return count + (piece.len > 0);
}

/* The plaintext of the next record, at most `most` bytes: in place, or copied to `scratch` where a
 * file follows. Returns the number of pieces; 0: the file has changed. */
static unsigned next_plain(struct session *s, char *scratch, size_t most, struct span *pieces)
{
    struct session_buffer *out = s->output;
    const struct session_answer *answer = &out->answer;
    if (out->loan_count > 0)
        return session_buffer_pieces(out, pieces, RECORD_PIECES, most);
    const struct span staged = span_first(span_of(out->bytes + out->at, out->len - out->at), most);
    if (!answer->open)
        return add_piece(pieces, 0, staged);
    const struct span memory = span_first(answer->memory, most - staged.len);
    size_t len = staged.len + memory.len;
    if (len == most || answer->file_at == answer->file_end)
        return add_piece(pieces, add_piece(pieces, 0, staged), memory);
    if (staged.len > 0)
        memcpy(scratch, staged.at, staged.len);
    if (memory.len > 0)
        memcpy(scratch + staged.len, memory.at, memory.len);
    if (!add_file_bytes(s->thread, out, scratch, most, &len))
        return 0;
    return add_piece(pieces, 0, span_of(scratch, len));
}

/* Whether output is left to be sealed. That of HTTP/2 is filled up to `most` bytes. */
static bool has_plain_left(struct session *s, size_t most)
{
    struct session_buffer *out = s->output;
    if (session_buffer_has_bytes(out))
        return true;
    if (s->http2)
        return session_http2_waits(s) && session_http2_fill(s, most, s->thread->now_ns);
    return out->answer.open &&
           (out->answer.memory.len > 0 || out->answer.file_at < out->answer.file_end ||
            session_answer_stage_part(out));
}

static bool has_plain_buffer(struct session_thread *thread)
{
    if (!thread->tls_plain)
        thread->tls_plain = malloc(SESSION_TLS_PLAIN_BYTES);
    return thread->tls_plain != NULL;
}

/* The answer cannot be completed. */
static unsigned cut_output(struct session *s)
{
    unsigned want = session_http1_cut(s);
    s->tls->failed = true;
    return session_tls_has_output(s) ? SESSION_WRITE : want;
}

static unsigned want_of_output(const struct session *s)
{
    return s->http2 ? session_http2_want(s) : SESSION_WRITE;
}

/* Seals the next record of the output, of at most `most` bytes. Returns how many; 0: it failed. */
static size_t seal_record(struct session *s, size_t most)
{
    struct span pieces[RECORD_PIECES];
    char *scratch = s->thread->tls_plain;
    if (most > TLS_RECORD_BYTES)
        most = TLS_RECORD_BYTES;
    const unsigned count = next_plain(s, scratch, most, pieces);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++)
        len += pieces[i].len;
    if (len == 0 ||
        tls_connection_write_pieces(&s->tls->connection, pieces, count, scratch) != TLS_DONE)
        return 0;
    (void)session_buffer_take_sent(s->output, len);
    return len;
}

/* Whether the output continues with a file whose pages are not in memory. */
static bool lacks_pages(struct session *s)
{
    struct session_answer *answer = &s->output->answer;
    return !session_buffer_has_bytes(s->output) && answer->open && answer->memory.len == 0 &&
           answer->file_at < answer->file_end && session_pages_ready(s->thread, answer) == 0;
}

/* The rest of the output is not in memory. What is sealed is sent meanwhile. */
static unsigned await_pages(struct session *s, uint64_t now_ns)
{
    session_hold(s);
    if (!session_tls_has_output(s))
        return session_http1_await_pages(s, now_ns);
    session_pages_wait(s, &s->output->answer, now_ns);
    return SESSION_WRITE;
}

/* Seals as much of the output as may wait at a time. */
static unsigned seal_output(struct session *s)
{
    struct session_tls *t = s->tls;
    size_t sealed = 0;
    bool left = true;
    if (!has_plain_buffer(s->thread))
        return cut_output(s);
    if (s->http2 && s->http2->answers > 0)
        (void)session_http2_fill(s, SESSION_BATCH_BYTES, s->thread->now_ns);
    while (sealed < SESSION_BATCH_BYTES &&
           (left = has_plain_left(s, SESSION_BATCH_BYTES - sealed)) && !lacks_pages(s)) {
        const size_t len = seal_record(s, SESSION_BATCH_BYTES - sealed);
        if (len == 0)
            return cut_output(s);
        sealed += len;
    }
    if (!s->closing)
        tls_connection_settle(&t->connection);
    t->answered = true;
    if (s->http2) /* more is added when this is sent, so that urgent answers come first */
        left = session_buffer_has_bytes(s->output);
    else
        left = left && has_plain_left(s, 0);
    if (left && lacks_pages(s))
        return await_pages(s, s->thread->now_ns);
    if (left)
        session_hold(s);
    if (!left && s->closing && !t->ended) {
        t->ended = true;
        tls_connection_end(&t->connection);
    }
    return want_of_output(s);
}

/* ---- input ---- */

/* Keeps what is left of `connection.in`. False: out of memory. */
static bool keep_input(struct session_tls *t)
{
    struct span in = t->connection.in;
    if (in.len == 0)
        return true;
    CHECK(!t->kept);
    t->kept = malloc(in.len);
    if (!t->kept)
        return false;
    memcpy(t->kept, in.at, in.len);
    t->kept_len = in.len;
    return true;
}

/* The client broke the protocol, and gets an alert. Nothing follows that (RFC 8446 section 6.2).
 * With a half-close, no reset can lose it. */
static unsigned fail_tls(struct session *s)
{
    session_pending_drop(s, &s->pending);
    (void)session_http1_cut(s);
    s->tls->failed = s->closing = s->lingering = true;
    return session_tls_has_output(s) ? SESSION_WRITE : SESSION_CLOSE;
}

/* No answer is under way: the connection ends with close_notify (RFC 8446 section 6.1). */
static unsigned end_tls(struct session *s, uint64_t now_ns)
{
    struct session_tls *t = s->tls;
    s->closing = t->ended = true;
    s->phase = SESSION_SENDING;
    s->deadline_ns = now_ns + s->thread->shared->send_timeout_ns;
    tls_connection_end(&t->connection);
    return session_tls_has_output(s) ? SESSION_WRITE : SESSION_CLOSE;
}

static unsigned feed_plain(struct session *s, struct span plain, uint64_t now_ns)
{
    return s->http2 ? session_http2_feed(s, plain, now_ns) : session_http1_feed(s, plain, now_ns);
}

/* The client sends no more. */
static unsigned end_input(struct session *s, uint64_t now_ns)
{
    unsigned want = feed_plain(s, span_of(NULL, 0), now_ns);
    return s->http2 && want != SESSION_CLOSE ? want : end_tls(s, now_ns);
}

/* Decrypts what is in `connection.in`, and has HTTP/1.1 take it. */
static unsigned read_plain(struct session *s, uint64_t now_ns)
{
    struct session_tls *t = s->tls;
    size_t room = s->http2 ? session_http2_room(s) : session_http1_room(s);
    if (room > SESSION_TLS_PLAIN_BYTES)
        room = SESSION_TLS_PLAIN_BYTES;
    size_t len;
    enum tls_result result = tls_connection_read(&t->connection, s->thread->tls_plain, room, &len);
    unsigned want = SESSION_READ;
    if (len > 0)
        want = feed_plain(s, span_of(s->thread->tls_plain, len), now_ns);
    if (result == TLS_FAILED)
        return fail_tls(s);
    if (result == TLS_ENDED && want == SESSION_READ)
        return end_input(s, now_ns);
    t->peer_ended = t->peer_ended || result == TLS_ENDED;
    return want;
}

static bool has_input(const struct session_tls *t)
{
    return t->kept_len > 0 || tls_connection_has_plain(&t->connection) || t->peer_ended;
}

/* HTTP/1.1 waits for input, and some waits here. */
static unsigned read_kept(struct session *s, uint64_t now_ns)
{
    struct session_tls *t = s->tls;
    if (t->kept_len == 0 && !tls_connection_has_plain(&t->connection))
        return end_input(s, now_ns);
    char *kept = t->kept;
    t->connection.in = span_of(kept, t->kept_len);
    t->kept = NULL;
    t->kept_len = 0;
    unsigned want = read_plain(s, now_ns);
    if (!keep_input(t))
        want = SESSION_CLOSE;
    free(kept);
    return want;
}

/* Whether input that waits here can be taken now. */
static bool takes_input(const struct session *s, unsigned want)
{
    return want & SESSION_READ && s->phase != SESSION_LINGERING && has_input(s->tls) &&
           (!s->http2 || session_http2_room(s) > 0);
}

/* Whether the output is sealed now. That of HTTP/2 waits for the records before it, so that urgent
 * answers need not wait behind more than one batch. */
static bool seals_output(const struct session *s, unsigned want)
{
    return want & SESSION_WRITE && session_http1_has_output(s) &&
           (!s->http2 || !s->tls->answered || !session_tls_has_output(s));
}

/* Seals the output now, or keeps valid what it lends. */
static unsigned seal_or_hold(struct session *s, unsigned want)
{
    if (seals_output(s, want))
        return seal_output(s);
    if (s->output) /* it waits for the records before it */
        session_hold(s);
    return want;
}

/* The codec wants this now: seals its output, or continues with input that has arrived. Returns
 * what the session wants. Output may lend bytes of a file that are valid during this call only. So
 * it is sealed before input is taken: that may put an alert into the wire. */
static unsigned follow_codec(struct session *s, unsigned want, uint64_t now_ns)
{
    struct session_tls *t = s->tls;
    want = seal_or_hold(s, want);
    while (takes_input(s, want))
        want = seal_or_hold(s, read_kept(s, now_ns));
    const bool ends = (want & (SESSION_CLOSE | SESSION_HALF_CLOSE)) != 0;
    if (ends && s->http2 && !t->ended && !t->failed && !session_tls_has_output(s))
        return end_tls(s, now_ns);
    const bool waits = (want & (SESSION_READ | SESSION_WAIT)) != 0;
    return waits && session_tls_has_output(s) ? want_of_output(s) : want;
}

/* Begins with the protocol that the handshake has agreed on. */
static unsigned begin_codec(struct session *s, uint64_t now_ns)
{
    if (!tls_connection_is_http2(&s->tls->connection)) {
        session_http1_begin(s, now_ns);
        return SESSION_READ;
    }
    s->idle_since_ns = now_ns;
    return session_http2_begin(s, now_ns) ? session_http2_continue(s, now_ns) : SESSION_CLOSE;
}

/* Whether the handshake is complete. *ret_want says what the session wants. */
static bool shake_hands(struct session *s, uint64_t now_ns, unsigned *ret_want)
{
    struct session_tls *t = s->tls;
    switch (tls_connection_handshake(&t->connection)) {
    case TLS_DONE:
        t->established = true;
        t->agreed = tls_connection_agreed(&t->connection);
        t->site = tls_server_site_of(t->connection.ssl);
        session_tally_handshake(s, now_ns - t->began_ns);
        *ret_want = begin_codec(s, now_ns);
        return *ret_want != SESSION_CLOSE;
    case TLS_MORE:
        *ret_want = session_tls_has_output(s) ? SESSION_WRITE : SESSION_READ;
        return false;
    case TLS_ENDED:
    case TLS_FAILED:
        break;
    }
    *ret_want = fail_tls(s);
    return false;
}

unsigned session_tls_feed(struct session *s, struct span in, uint64_t now_ns)
{
    if (in.len == 0 || s->phase == SESSION_LINGERING)
        return feed_plain(s, in, now_ns);
    if (!s->tls && tls_connection_is_plain(in.at[0])) {
        s->tls_wanted = false;
        return session_http1_refuse(s, session_proxy_fault(in, HTTP_FAULT_PLAIN_HTTP),
                                    SPAN("This address speaks TLS. Write https:// before it.\n"),
                                    now_ns);
    }
    if (!has_plain_buffer(s->thread) || (!s->tls && !begin_tls(s, now_ns)))
        return SESSION_CLOSE;
    struct session_tls *t = enter_tls(s);
    t->connection.in = in;
    unsigned want = SESSION_READ;
    if (!t->established && !shake_hands(s, now_ns, &want))
        return want;
    if (t->connection.in.len > 0)
        want = read_plain(s, now_ns);
    if (!keep_input(t))
        return SESSION_CLOSE;
    return follow_codec(s, want, now_ns);
}

/* ---- output ---- */

struct session_out session_tls_output(const struct session *s)
{
    const struct session_tls *t = s->tls;
    struct session_out out; /* without zeros for pieces that are not used */
    out.count = tls_wire_pieces(&t->connection.wire, out.piece, SESSION_PIECES);
    out.file_fd = -1;
    out.file_offset = out.file_len = 0;
    out.last = (t->ended && !s->lingering) || t->failed;
    return out;
}

unsigned session_tls_sent(struct session *s, size_t bytes, uint64_t now_ns)
{
    struct session_tls *t = enter_tls(s);
    tls_wire_sent(&t->connection.wire, t->connection.chunks, bytes);
    if (session_tls_has_output(s)) {
        session_note_progress(s, bytes, now_ns);
        if (s->output && s->output->delayed_ns == 0)
            s->output->delayed_ns = now_ns;
        return s->http2 ? session_http2_continue(s, now_ns) : SESSION_WRITE;
    }
    if (s->http2)
        return follow_codec(s, session_http2_sent(s, bytes, now_ns), now_ns);
    if (t->failed)
        return session_http1_continue(s, now_ns);
    if (s->pending && !s->output)
        return follow_codec(s, session_http1_resume(s, now_ns), now_ns);
    if (!t->established || (!s->output && !s->closing))
        return follow_codec(s, SESSION_READ, now_ns);
    if (s->output && s->output->answer.open && s->output->answer.pages)
        return follow_codec(s, session_http1_resume(s, now_ns), now_ns);
    if (s->output && has_plain_left(s, SESSION_BATCH_BYTES)) {
        session_note_progress(s, bytes, now_ns);
        return seal_output(s);
    }
    return follow_codec(s, session_http1_sent(s, now_ns), now_ns);
}

unsigned session_tls_drain(struct session *s, uint64_t now_ns)
{
    (void)enter_tls(s);
    const unsigned want = session_http2_drain(s, now_ns);
    return want == 0 ? 0 : follow_codec(s, want, now_ns);
}

unsigned session_tls_resume(struct session *s, uint64_t now_ns)
{
    (void)enter_tls(s);
    if (s->http2)
        return follow_codec(s, session_http2_resume(s, now_ns), now_ns);
    if (session_tls_has_output(s))
        return want_of_output(s); /* the answer follows when this is sent */
    return follow_codec(s, session_http1_resume(s, now_ns), now_ns);
}

unsigned session_tls_expire(struct session *s, uint64_t now_ns)
{
    bool idle = s->phase == SESSION_IDLE;
    if (s->http2) {
        (void)enter_tls(s);
        return follow_codec(s, session_http2_expire(s, now_ns), now_ns);
    }
    unsigned want = session_http1_expire(s, now_ns);
    (void)enter_tls(s);
    return idle ? end_tls(s, now_ns) : follow_codec(s, want, now_ns);
}
