/* SPDX-License-Identifier: MIT */
#include "log/render.h"

#include "base/calendar.h"
#include "base/duration.h"
#include "base/num.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

/* The shortest limit of a line is that of a pipe. There is space for three bytes of each text. */
static_assert(LOG_LAYOUT_TEXT_MAX + LOG_TEXTS_MAX * LOG_OWN_MAX + 3 * LOG_TEXTS_MAX <= PIPE_BUF,
              "a line has space for its texts");

/* What the values of a line are made of. */
struct source {
    const struct log_layout *layout;
    const struct log_access_line *line;
    const struct log_access_details *details;
    const struct log_moment *moment;
};

/* ---- the time ---- */

static void note_second(struct log_moment *moment, int64_t second)
{
    if (moment->known && moment->second == second)
        return;
    const struct calendar t = calendar_of(second);
    calendar_format(moment->iso, second);
    const int len = snprintf(moment->local, sizeof(moment->local),
                             "%02d/%s/%04d:%02d:%02d:%02d +0000", t.day, calendar_month(t.month),
                             t.year, t.hour, t.minute, t.second);
    CHECK(len > 0 && (size_t)len < sizeof(moment->local));
    moment->second = second;
    moment->known = true;
}

/* ---- values that weir writes ---- */

/* Each writes to `out`, LOG_OWN_MAX bytes, and returns the value. */

static struct span put_number(char *out, uint64_t value)
{
    return span_of(out, num_format_u64(out, value));
}

/* Milliseconds as seconds with three decimals. */
static struct span put_seconds(char *out, uint64_t ms)
{
    const int len = snprintf(out, LOG_OWN_MAX, "%llu.%03u", (unsigned long long)(ms / 1000),
                             (unsigned)(ms % 1000));
    CHECK(len > 0 && len < LOG_OWN_MAX);
    return span_of(out, (size_t)len);
}

static struct span put_iso(char *out, const struct source *from, bool with_ms)
{
    const unsigned ms = (unsigned)(from->details->wall_ms % 1000);
    const int seconds_len = CALENDAR_LEN - 1; /* without Z */
    const char *iso = from->moment->iso;
    const int len = with_ms ? snprintf(out, LOG_OWN_MAX, "%.*s.%03uZ", seconds_len, iso, ms)
                            : snprintf(out, LOG_OWN_MAX, "%.*s+00:00", seconds_len, iso);
    CHECK(len > 0 && len < LOG_OWN_MAX);
    return span_of(out, (size_t)len);
}

static struct span put_brackets(char *out, const struct source *from)
{
    const int len = snprintf(out, LOG_OWN_MAX, "[%s]", from->moment->local);
    CHECK(len > 0 && len < LOG_OWN_MAX);
    return span_of(out, (size_t)len);
}

static struct span put_id(char *out, uint64_t id)
{
    num_format_hex(out, id);
    return span_of(out, NUM_HEX_DIGITS);
}

static struct span put_own(char *out, enum log_value value, const struct source *from)
{
    const struct log_access_line *line = from->line;
    const struct log_access_details *details = from->details;
    const bool is_error = line->status >= 400;
    switch ((int)value) { /* most values are none of these */
    case LOG_VALUE_TIME_LOCAL:
        return span_text(from->moment->local);
    case LOG_VALUE_TIME_BRACKETS:
        return put_brackets(out, from);
    case LOG_VALUE_TIME_ISO:
        return put_iso(out, from, false);
    case LOG_VALUE_TIME_MS:
        return put_iso(out, from, true);
    case LOG_VALUE_MSEC:
        return put_seconds(out, (uint64_t)details->wall_ms);
    case LOG_VALUE_WHOLE_S:
        return put_number(out, (uint64_t)details->wall_ms / 1000);
    case LOG_VALUE_STATUS:
        return put_number(out, line->status);
    case LOG_VALUE_BYTES:
        return put_number(out, line->body_bytes);
    case LOG_VALUE_BYTES_OR_DASH:
        return line->body_bytes > 0 ? put_number(out, line->body_bytes) : SPAN("-");
    case LOG_VALUE_DURATION_S:
        return put_seconds(out, details->duration_ns / DURATION_MS);
    case LOG_VALUE_DURATION_WHOLE_S:
        return put_number(out, details->duration_ns / DURATION_SECOND);
    case LOG_VALUE_DURATION_US:
        return put_number(out, details->duration_ns / 1000);
    case LOG_VALUE_RECEIVE_US:
        return put_number(out, details->receive_ns / 1000);
    case LOG_VALUE_SEND_US:
        return put_number(out, (details->duration_ns - details->receive_ns) / 1000);
    case LOG_VALUE_DISK_US:
        return put_number(out, details->waited_ns / 1000);
    case LOG_VALUE_ID:
        return put_id(out, line->id);
    case LOG_VALUE_SAMPLE:
        return put_number(out, is_error ? 1 : from->layout->sample);
    default:
        CHECK(false);
        return SPAN("");
    }
}

/* ---- texts of others ---- */

/* The parts of a request line. A line without two spaces is a method alone. */
struct request_parts {
    struct span method, target, version;
};

static struct request_parts split_request(struct span line)
{
    const char *first = line.len > 0 ? memchr(line.at, ' ', line.len) : NULL;
    const char *last = line.len > 0 ? memrchr(line.at, ' ', line.len) : NULL;
    if (first == NULL || first == last)
        return (struct request_parts){ .method = line };
    return (struct request_parts){
        .method = span_of(line.at, (size_t)(first - line.at)),
        .target = span_of(first + 1, (size_t)(last - first) - 1),
        .version = span_skip(line, (size_t)(last - line.at) + 1),
    };
}

/* The query of a target, with its question mark. */
static struct span query_of(struct span target)
{
    const char *mark = target.len > 0 ? memchr(target.at, '?', target.len) : NULL;
    return mark != NULL ? span_skip(target, (size_t)(mark - target.at)) : SPAN("");
}

static struct span part_of_request(enum log_value value, struct span line)
{
    const struct request_parts parts = split_request(line);
    const struct span query = query_of(parts.target);
    switch ((int)value) { /* most values are none of these */
    case LOG_VALUE_METHOD:
        return parts.method;
    case LOG_VALUE_TARGET:
        return parts.target;
    case LOG_VALUE_PATH:
        return span_first(parts.target, parts.target.len - query.len);
    case LOG_VALUE_QUERY:
        return query.len > 0 ? span_skip(query, 1) : query;
    case LOG_VALUE_QUERY_MARKED:
        return query;
    default:
        return parts.version;
    }
}

static struct span field_of(const struct source *from, enum http_field field)
{
    if (field == HTTP_FIELD_REFERER)
        return from->line->referer;
    if (field == HTTP_FIELD_USER_AGENT)
        return from->line->user_agent;
    return from->details->field[log_layout_slot(from->layout, field)];
}

static struct span cache_of(enum log_cache cache)
{
    return cache == LOG_CACHE_HIT ? SPAN("hit") : cache == LOG_CACHE_MISS ? SPAN("miss") : SPAN("");
}

static struct span find_text(const struct log_place *place, const struct source *from)
{
    const struct log_access_line *line = from->line;
    switch ((int)place->value) { /* the others are parts of the request line */
    case LOG_VALUE_PEER:
        return line->peer;
    case LOG_VALUE_VIA:
        return line->via;
    case LOG_VALUE_USER:
        return from->details->user;
    case LOG_VALUE_REQUEST:
        return line->request_line;
    case LOG_VALUE_SCHEME:
        return line->protocol.len > 0 ? SPAN("https") : SPAN("http");
    case LOG_VALUE_HOST:
        return line->host;
    case LOG_VALUE_SITE:
        return from->details->site;
    case LOG_VALUE_TLS:
        return line->protocol;
    case LOG_VALUE_CIPHER:
        return line->cipher;
    case LOG_VALUE_CACHE:
        return cache_of(from->details->cache);
    case LOG_VALUE_TRACEPARENT:
        return line->traceparent;
    case LOG_VALUE_FIELD:
        return field_of(from, (enum http_field)place->field);
    default:
        return part_of_request((enum log_value)place->value, line->request_line);
    }
}

/* ---- a line ---- */

static struct log_text text_of(const struct log_place *place, const struct source *from)
{
    const struct span found = find_text(place, from);
    const bool dash = found.len == 0 && !place->optional && !from->layout->json;
    return (struct log_text){ .raw = dash ? SPAN("-") : found,
                              .how = (enum escape)place->escaping };
}

size_t log_render_measure(struct log_render *render, const struct log_layout *layout,
                          const struct log_access_line *line,
                          const struct log_access_details *details, struct log_moment *moment,
                          size_t line_max)
{
    const struct source from = { layout, line, details, moment };
    size_t len = 0;
    note_second(moment, details->wall_ms / 1000);
    render->layout = layout;
    for (unsigned i = 0; i < layout->count; i++) {
        const struct log_place *place = &layout->place[i];
        struct log_text *text = &render->text[i];
        if (place->is_own) {
            /* layout->around has the space */
            *text = (struct log_text){ .plain = true };
            continue;
        }
        *text = text_of(place, &from);
        log_text_measure(text);
        len += text->len;
    }
    const bool fits = len <= line_max - layout->around;
    if (!fits)
        log_text_cut_longest(render->text, layout->count, line_max - layout->around);
    for (unsigned i = 0; i < layout->count; i++)
        if (layout->place[i].is_own)
            render->text[i].raw =
                put_own(render->own[i], (enum log_value)layout->place[i].value, &from);
    return fits ? len + layout->around : line_max;
}

char *log_render_put(const struct log_render *render, char *out)
{
    const struct log_layout *layout = render->layout;
    for (unsigned i = 0; i < layout->count; i++) {
        const struct log_place *place = &layout->place[i];
        const struct log_text *text = &render->text[i];
        if (place->optional && text->raw.len == 0)
            continue;
        if (place->before.len > 0)
            out = log_text_copy(out, place->before);
        out = log_text_put(out, text);
        if (place->after.len > 0)
            out = log_text_copy(out, place->after);
    }
    return log_text_copy(out, layout->tail);
}
