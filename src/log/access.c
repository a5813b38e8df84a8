/* SPDX-License-Identifier: MIT
 *
 * The buffer, and the format `combined`. log/render.c writes lines with a layout, log/text.h their
 * texts, and log/sink.c the buffer.
 */
#include "log/access.h"

#include "base/calendar.h"
#include "base/num.h"
#include "log/render.h"
#include "log/sink.h"
#include "log/text.h"
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Only a pipe, a terminal or a socket leaves lines in the buffer. */
#define TOO_SLOW "their reader does not keep up"

enum { PEER, REQUEST, REFERER, AGENT, TEXTS };

enum { MESSAGE_AROUND_MAX = 2 * LOG_MESSAGE_HEAD_MAX + 1 };

/* The most bytes around the texts: the stamp, three numbers, the quotes and spaces. And the spaces
 * before the words that few lines have. */
enum { AROUND_MAX = 120, AROUND_TLS_MAX = 2, AROUND_TRACEPARENT_MAX = 1 };

int log_access_start(struct log_access *log, struct log_access_sink *sink)
{
    *log = (struct log_access){ .sink = sink, .layout = sink->layout };
    if (atomic_load_explicit(&sink->fd, memory_order_relaxed) < 0)
        return 0;
    log->bytes = malloc(LOG_ACCESS_BUFFER);
    return log->bytes != NULL ? 0 : -ENOMEM;
}

/* Formats the part of each line from the peer to the request. It changes once a second. */
static void stamp_second(struct log_access *log, int64_t wall_s)
{
    const struct calendar t = calendar_of(wall_s < 0 ? 0 : wall_s);
    const int len = snprintf(log->stamp, sizeof(log->stamp),
                             " - - [%02d/%s/%04d:%02d:%02d:%02d +0000] \"", t.day,
                             calendar_month(t.month), t.year, t.hour, t.minute, t.second);
    CHECK(len > 0 && (size_t)len < sizeof(log->stamp));
    log->stamp_len = (size_t)len;
    log->stamp_s = wall_s;
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

static inline char *put_text(char *out, const struct log_text *text)
{
    if (text->raw.len == 0)
        return log_text_copy(out, SPAN("-"));
    return log_text_put(out, text);
}

/* Copies all bytes of the array, because a copy of a constant length needs no call. */
static char *put_stamp(char *out, const struct log_access *log)
{
    memcpy(out, log->stamp, sizeof(log->stamp));
    return out + log->stamp_len;
}

static char *put_combined(char *out, const struct log_text texts[TEXTS],
                          const struct log_access *log, const struct log_access_line *line)
{
    out = put_text(out, &texts[PEER]);
    out = put_stamp(out, log);
    out = put_text(out, &texts[REQUEST]);
    out = log_text_copy(out, SPAN("\" "));
    out = put_decimal(out, line->status);
    out = log_text_copy(out, SPAN(" "));
    out = line->body_bytes > 0 ? put_decimal(out, line->body_bytes) : log_text_copy(out, SPAN("-"));
    out = log_text_copy(out, SPAN(" \""));
    out = put_text(out, &texts[REFERER]);
    out = log_text_copy(out, SPAN("\" \""));
    out = put_text(out, &texts[AGENT]);
    out = log_text_copy(out, SPAN("\" "));
    out = put_id(out, line->id);
    if (line->protocol.len > 0) {
        out = log_text_copy(out, SPAN(" "));
        out = log_text_copy(out, line->protocol);
        out = log_text_copy(out, SPAN(" "));
        out = log_text_copy(out, line->cipher);
    }
    if (__builtin_expect(line->traceparent.len > 0, 0)) {
        out = log_text_copy(out, SPAN(" "));
        out = log_text_copy(out, line->traceparent);
    }
    return log_text_copy(out, SPAN("\n"));
}

static size_t around_of(const struct log_access_line *line)
{
    size_t around = AROUND_MAX;
    if (line->protocol.len > 0)
        around += line->protocol.len + line->cipher.len + AROUND_TLS_MAX;
    if (__builtin_expect(line->traceparent.len > 0, 0))
        around += line->traceparent.len + AROUND_TRACEPARENT_MAX;
    return around;
}

/* Measures the line's texts, and cuts them when they are too long together. Returns the most
 * bytes that the line takes. */
static size_t measure_combined(struct log_text texts[TEXTS], const struct log_access_sink *sink,
                               const struct log_access_line *line)
{
    texts[PEER] = (struct log_text){ .raw = line->peer, .how = ESCAPE_WORD };
    texts[REQUEST] = (struct log_text){ .raw = line->request_line, .how = ESCAPE_BYTES };
    texts[REFERER] = (struct log_text){ .raw = line->referer, .how = ESCAPE_BYTES };
    texts[AGENT] = (struct log_text){ .raw = line->user_agent, .how = ESCAPE_BYTES };
    size_t len = 0;
    for (unsigned i = 0; i < TEXTS; i++) {
        if (texts[i].raw.len > 0)
            log_text_measure(&texts[i]);
        else
            texts[i].len = 1; /* a `-` */
        len += texts[i].len;
    }
    const size_t around = around_of(line);
    const size_t line_max = log_sink_line_max(sink);
    if (len <= line_max - around)
        return len + around;
    log_text_cut_longest(texts, TEXTS, line_max - around);
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

/* Makes space for a line. False: there is none, and the line is dropped. */
static bool has_room(struct log_access *log, size_t len_max)
{
    if (__builtin_expect(len_max > LOG_ACCESS_BUFFER - log->len, 0))
        write_pending(log);
    if (__builtin_expect(len_max <= LOG_ACCESS_BUFFER - log->len, 1))
        return true;
    log_sink_drop(log, 1, TOO_SLOW);
    return false;
}

/* A line has been written up to `end`. */
static void end_line(struct log_access *log, size_t len_max, const char *end)
{
    const size_t len = (size_t)(end - (log->bytes + log->len));
    CHECK(len <= len_max);
    log->len += len;
    log->lines_pending++;
}

static void add_combined(struct log_access *log, const struct log_access_line *line, int64_t wall_s)
{
    if (log->stamp_len == 0 || wall_s != log->stamp_s)
        stamp_second(log, wall_s);
    struct log_text texts[TEXTS];
    const size_t len_max = measure_combined(texts, log->sink, line);
    if (!has_room(log, len_max))
        return;
    end_line(log, len_max, put_combined(log->bytes + log->len, texts, log, line));
}

static void add_rendered(struct log_access *log, const struct log_access_line *line,
                         const struct log_access_details *details)
{
    struct log_render render;
    const struct log_message_about about = { .kind = log->sink->message,
                                             .severity = line->status >= 500 ? LOG_MESSAGE_WARNING
                                                                             : LOG_MESSAGE_INFO,
                                             .log = "access",
                                             .wall_ms = details->wall_ms };
    const size_t around = about.kind != LOG_MESSAGE_NONE ? MESSAGE_AROUND_MAX : 0;
    const size_t len_max = around + log_render_measure(&render, log->layout, line, details,
                                                       &log->moment, log_sink_line_max(log->sink));
    if (!has_room(log, len_max))
        return;
    char *out = log->bytes + log->len;
    if (about.kind != LOG_MESSAGE_NONE)
        out += log_message_put_head(out, &about);
    out = log_render_put(&render, out);
    if (about.kind == LOG_MESSAGE_JOURNAL) {
        out += log_message_put_fields(out, &about);
        *out++ = '\n'; /* an empty line ends the entry in the buffer */
    }
    end_line(log, len_max, out);
}

void log_access_add(struct log_access *log, const struct log_access_line *line, int64_t wall_s)
{
    if (log->bytes == NULL)
        return;
    lock_shared(log);
    if (__builtin_expect(log->layout != NULL, 0)) {
        const int64_t second = wall_s < CALENDAR_LAST ? wall_s : CALENDAR_LAST;
        const struct log_access_details none = { .wall_ms = second > 0 ? second * 1000 : 0 };
        add_rendered(log, line, &none);
    } else {
        add_combined(log, line, wall_s);
    }
    unlock_shared(log);
}

void log_access_add_detailed(struct log_access *log, const struct log_access_line *line,
                             const struct log_access_details *details)
{
    struct log_access_details timed = *details;
    if (timed.wall_ms == 0)
        timed.wall_ms = os_clock_wall_ms();
    lock_shared(log);
    add_rendered(log, line, &timed);
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
    log_sink_drop(log, log->lines_pending, TOO_SLOW);
    free(log->bytes);
    *log = (struct log_access){ 0 };
}
