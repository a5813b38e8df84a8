/* SPDX-License-Identifier: MIT
 *
 * Formatting lines. All texts of a line are measured first. A line that fits is then written
 * without further checks, and a longer one is cut to the limit. Clean text, which is nearly all,
 * is copied. Other text goes through base/escape.h. log/sink.c writes the buffer.
 */
#include "log/access.h"

#include "base/calendar.h"
#include "base/escape.h"
#include "base/num.h"
#include "base/scan.h"
#include "log/sink.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* One text of a line. */
struct piece {
    struct span raw;
    enum escape how;
    bool plain;  /* needs no escaping */
    size_t told; /* bytes in the line; the limit when it is cut */
    bool cut;
};

enum { PEER, REQUEST, HOST, REFERER, AGENT, PIECES };

/* The most bytes around the texts: the stamp, the JSON names, three numbers. And the JSON names of
 * the texts that few lines have. */
enum { AROUND_MAX = 164, AROUND_TLS_MAX = 24, AROUND_VIA_MAX = 9, AROUND_TRACEPARENT_MAX = 17 };

static const struct span ellipsis = { "...", 3 };

int log_access_start(struct log_access *log, struct log_access_sink *sink)
{
    *log = (struct log_access){ .sink = sink };
    if (atomic_load_explicit(&sink->fd, memory_order_relaxed) < 0)
        return 0;
    log->bytes = malloc(LOG_ACCESS_BUFFER);
    return log->bytes != NULL ? 0 : -ENOMEM;
}

/* Formats the part of each line that changes once a second. In `combined` it reaches from the
 * peer to the request, in JSON from the line's start to the peer. */
static void stamp_second(struct log_access *log, int64_t wall_s)
{
    const int64_t second = wall_s < 0 ? 0 : wall_s;
    const struct calendar t = calendar_of(second);
    char now[CALENDAR_LEN];
    calendar_format(now, second);
    int len;
    if (log->sink->format == LOG_JSON)
        len = snprintf(log->stamp, sizeof(log->stamp), "{\"time\":\"%.*s\",\"peer\":\"",
                       (int)CALENDAR_LEN, now);
    else
        len = snprintf(log->stamp, sizeof(log->stamp),
                       " - - [%02d/%s/%04d:%02d:%02d:%02d +0000] \"", t.day,
                       calendar_month(t.month), t.year, t.hour, t.minute, t.second);
    CHECK(len > 0 && (size_t)len < sizeof(log->stamp));
    log->stamp_len = (size_t)len;
    log->stamp_s = wall_s;
}

static void measure_piece(struct piece *piece)
{
    piece->plain = scan_log_unsafe(piece->raw.at, piece->raw.len) == piece->raw.len;
    if (piece->how == ESCAPE_WORD && piece->raw.len > 0)
        piece->plain = piece->plain && memchr(piece->raw.at, ' ', piece->raw.len) == NULL;
    piece->told = piece->plain ? piece->raw.len
                               : escape_text(NULL, SIZE_MAX, piece->raw, piece->how);
}

/* Cuts the longest texts to one length, so that all take at most `room` bytes. They take more
 * before. */
static void cut_longest(struct piece pieces[PIECES], size_t room)
{
    bool fits[PIECES] = { false };
    unsigned long_count = PIECES;
    for (unsigned i = 0; i < PIECES; i++) {
        if (fits[i] || pieces[i].told > room / long_count)
            continue;
        fits[i] = true;
        room -= pieces[i].told;
        long_count--;
        i = UINT_MAX; /* the others may now take more: check all again */
    }
    for (unsigned i = 0; i < PIECES; i++) {
        if (fits[i])
            continue;
        pieces[i].told = room / long_count;
        pieces[i].cut = true;
    }
}

static char *put_text(char *out, struct span text)
{
    memcpy(out, text.at, text.len);
    return out + text.len;
}

static char *put_decimal(char *out, uint64_t value)
{
    return out + num_format_u64(out, value);
}

static char *put_id(char *out, uint64_t id)
{
    num_format_hex(out, id);
    return out + NUM_HEX_DIGITS;
}

static char *put_piece(char *out, const struct piece *piece)
{
    if (piece->cut) {
        out += escape_text(out, piece->told - ellipsis.len, piece->raw, piece->how);
        return put_text(out, ellipsis);
    }
    if (!piece->plain)
        return out + escape_text(out, piece->told, piece->raw, piece->how);
    return piece->raw.len > 0 ? put_text(out, piece->raw) : out;
}

static char *put_combined(char *out, const struct piece pieces[PIECES], struct span stamp,
                          const struct log_access_line *line)
{
    out = put_piece(out, &pieces[PEER]);
    out = put_text(out, stamp);
    out = put_piece(out, &pieces[REQUEST]);
    out = put_text(out, SPAN("\" "));
    out = put_decimal(out, line->status);
    out = put_text(out, SPAN(" "));
    out = line->body_bytes > 0 ? put_decimal(out, line->body_bytes) : put_text(out, SPAN("-"));
    out = put_text(out, SPAN(" \""));
    out = put_piece(out, &pieces[REFERER]);
    out = put_text(out, SPAN("\" \""));
    out = put_piece(out, &pieces[AGENT]);
    out = put_text(out, SPAN("\" "));
    out = put_id(out, line->id);
    if (line->protocol.len > 0) {
        out = put_text(out, SPAN(" "));
        out = put_text(out, line->protocol);
        out = put_text(out, SPAN(" "));
        out = put_text(out, line->cipher);
    }
    if (__builtin_expect(line->traceparent.len > 0, 0)) {
        out = put_text(out, SPAN(" "));
        out = put_text(out, line->traceparent);
    }
    return put_text(out, SPAN("\n"));
}

static char *put_json(char *out, const struct piece pieces[PIECES], struct span stamp,
                      const struct log_access_line *line)
{
    out = put_text(out, stamp);
    out = put_piece(out, &pieces[PEER]);
    if (__builtin_expect(line->via.len > 0, 0)) {
        out = put_text(out, SPAN("\",\"via\":\""));
        out = put_text(out, line->via);
    }
    out = put_text(out, SPAN("\",\"request\":\""));
    out = put_piece(out, &pieces[REQUEST]);
    out = put_text(out, SPAN("\",\"host\":\""));
    out = put_piece(out, &pieces[HOST]);
    out = put_text(out, SPAN("\",\"status\":"));
    out = put_decimal(out, line->status);
    out = put_text(out, SPAN(",\"bytes\":"));
    out = put_decimal(out, line->body_bytes);
    out = put_text(out, SPAN(",\"referer\":\""));
    out = put_piece(out, &pieces[REFERER]);
    out = put_text(out, SPAN("\",\"agent\":\""));
    out = put_piece(out, &pieces[AGENT]);
    if (line->protocol.len > 0) {
        out = put_text(out, SPAN("\",\"tls\":\""));
        out = put_text(out, line->protocol);
        out = put_text(out, SPAN("\",\"cipher\":\""));
        out = put_text(out, line->cipher);
    }
    if (__builtin_expect(line->traceparent.len > 0, 0)) {
        out = put_text(out, SPAN("\",\"traceparent\":\""));
        out = put_text(out, line->traceparent);
    }
    out = put_text(out, SPAN("\",\"id\":\""));
    out = put_id(out, line->id);
    return put_text(out, SPAN("\"}\n"));
}

static struct span or_dash(struct span text)
{
    return text.len > 0 ? text : SPAN("-");
}

static size_t around_of(const struct log_access_line *line)
{
    size_t around = AROUND_MAX;
    if (line->protocol.len > 0)
        around += line->protocol.len + line->cipher.len + AROUND_TLS_MAX;
    if (__builtin_expect(line->via.len > 0, 0))
        around += line->via.len + AROUND_VIA_MAX;
    if (__builtin_expect(line->traceparent.len > 0, 0))
        around += line->traceparent.len + AROUND_TRACEPARENT_MAX;
    return around;
}

/* Measures the line's texts, and cuts them when they are too long together. Returns the most
 * bytes that the line takes. */
static size_t measure_line(struct piece pieces[PIECES], const struct log_access_sink *sink,
                           const struct log_access_line *line)
{
    if (sink->format == LOG_JSON) {
        pieces[PEER] = (struct piece){ .raw = line->peer, .how = ESCAPE_JSON };
        pieces[REQUEST] = (struct piece){ .raw = line->request_line, .how = ESCAPE_JSON };
        pieces[HOST] = (struct piece){ .raw = line->host, .how = ESCAPE_JSON };
        pieces[REFERER] = (struct piece){ .raw = line->referer, .how = ESCAPE_JSON };
        pieces[AGENT] = (struct piece){ .raw = line->user_agent, .how = ESCAPE_JSON };
    } else {
        pieces[PEER] = (struct piece){ .raw = or_dash(line->peer), .how = ESCAPE_WORD };
        pieces[REQUEST] = (struct piece){ .raw = or_dash(line->request_line), .how = ESCAPE_BYTES };
        pieces[HOST] = (struct piece){ .how = ESCAPE_BYTES };
        pieces[REFERER] = (struct piece){ .raw = or_dash(line->referer), .how = ESCAPE_BYTES };
        pieces[AGENT] = (struct piece){ .raw = or_dash(line->user_agent), .how = ESCAPE_BYTES };
    }
    size_t told = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        measure_piece(&pieces[i]);
        told += pieces[i].told;
    }
    const size_t around = around_of(line);
    const size_t line_max = log_sink_line_max(sink);
    if (told <= line_max - around)
        return told + around;
    cut_longest(pieces, line_max - around);
    return line_max;
}

void log_access_share(struct log_access *log, pthread_mutex_t *lock)
{
    log->lock = lock;
}

static void lock_shared(struct log_access *log)
{
    if (__builtin_expect(log->lock != NULL, 0))
        CHECK(pthread_mutex_lock(log->lock) == 0);
}

static void unlock_shared(struct log_access *log)
{
    if (__builtin_expect(log->lock != NULL, 0))
        CHECK(pthread_mutex_unlock(log->lock) == 0);
}

static void write_pending(struct log_access *log)
{
    if (log->len > 0)
        log_sink_write(log, 0);
}

static void add_line(struct log_access *log, const struct log_access_line *line, int64_t wall_s)
{
    if (log->stamp_len == 0 || wall_s != log->stamp_s)
        stamp_second(log, wall_s);
    struct piece pieces[PIECES];
    const size_t len_max = measure_line(pieces, log->sink, line);
    if (len_max > LOG_ACCESS_BUFFER - log->len)
        write_pending(log);
    if (len_max > LOG_ACCESS_BUFFER - log->len) {
        (void)atomic_fetch_add_explicit(&log->sink->dropped, 1, memory_order_relaxed);
        return;
    }
    const struct span stamp = span_of(log->stamp, log->stamp_len);
    char *const start = log->bytes + log->len;
    char *const end = log->sink->format == LOG_JSON ? put_json(start, pieces, stamp, line)
                                                    : put_combined(start, pieces, stamp, line);
    CHECK((size_t)(end - start) <= len_max);
    log->len += (size_t)(end - start);
    log->lines_pending++;
}

void log_access_add(struct log_access *log, const struct log_access_line *line, int64_t wall_s)
{
    if (log->bytes == NULL)
        return;
    lock_shared(log);
    add_line(log, line, wall_s);
    unlock_shared(log);
}

void log_access_flush(struct log_access *log)
{
    lock_shared(log);
    write_pending(log);
    unlock_shared(log);
}

bool log_access_pending(struct log_access *log)
{
    lock_shared(log);
    bool pending = log->len > 0;
    unlock_shared(log);
    return pending;
}

void log_access_forget(struct log_access *log)
{
    log->len = 0;
    log->lines_pending = 0;
}

void log_access_stop(struct log_access *log)
{
    if (log->len > 0)
        log_sink_write(log, LOG_SINK_PATIENCE_MS);
    if (log->lines_pending > 0)
        (void)atomic_fetch_add_explicit(&log->sink->dropped, log->lines_pending,
                                        memory_order_relaxed);
    free(log->bytes);
    *log = (struct log_access){ 0 };
}
