/* SPDX-License-Identifier: MIT
 *
 * The formats that weir has, as tables. log/format.c reads those that operators write.
 */
#include "log/layout.h"

#include "log/format.h"

/* One word of `log-fields`. */
static const struct word {
    const char *name;
    const char *key; /* in the line */
    enum log_value value;
    bool optional;
} words[] = {
    { "cache", "cache", LOG_VALUE_CACHE, false },
    { "disk", "disk_us", LOG_VALUE_DISK_US, false },
    { "duration", "duration_us", LOG_VALUE_DURATION_US, false },
    { "host", "host", LOG_VALUE_HOST, false },
    { "id", "id", LOG_VALUE_ID, false },
    { "phases", "receive_us", LOG_VALUE_RECEIVE_US, false },
    { "phases", "send_us", LOG_VALUE_SEND_US, false },
    { "protocol", "protocol", LOG_VALUE_PROTOCOL, false },
    { "scheme", "scheme", LOG_VALUE_SCHEME, false },
    { "site", "site", LOG_VALUE_SITE, false },
    { "time", "time", LOG_VALUE_TIME_MS, false },
    { "tls", "tls", LOG_VALUE_TLS, true },
    { "tls", "cipher", LOG_VALUE_CIPHER, true },
    { "user", "user", LOG_VALUE_USER, false },
    { "via", "via", LOG_VALUE_VIA, true },
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

const char *const log_layout_words[] = { "cache",  "disk",     "duration", "host", "id",
                                         "phases", "protocol", "scheme",   "site", "time",
                                         "tls",    "user",     "via",      NULL };

/* ---- the formats that weir has ---- */

static void add_text(struct log_format_making *m, const char *text)
{
    for (; *text != '\0'; text++)
        log_format_add_literal(m, *text);
}

static bool is_number(enum log_value value)
{
    switch ((int)value) { /* most values are none of these */
    case LOG_VALUE_STATUS:
    case LOG_VALUE_BYTES:
    case LOG_VALUE_DURATION_US:
    case LOG_VALUE_RECEIVE_US:
    case LOG_VALUE_SEND_US:
    case LOG_VALUE_DISK_US:
    case LOG_VALUE_SAMPLE:
        return true;
    default:
        return false;
    }
}

/* Adds a value with its key: ,"key":"value" or key=value. */
static bool add_keyed(struct log_format_making *m, const char *key, enum log_value value,
                      bool optional)
{
    struct log_layout *layout = m->layout;
    const bool json = layout->json;
    const char *quote = json && !is_number(value) ? "\"" : "";
    add_text(m, !json ? " " : layout->count == 0 ? "{\"" : ",\"");
    add_text(m, key);
    add_text(m, json ? "\":" : "=");
    add_text(m, quote);
    if (!log_format_add_place(
            m, (struct log_place){ .value = (uint8_t)value, .optional = optional }, ' '))
        return false;
    add_text(m, quote);
    layout->place[layout->count - 1].after = log_format_take_literal(m);
    return true;
}

/* Adds a word that few lines have. */
static bool add_rare(struct log_format_making *m, enum log_value value)
{
    add_text(m, " ");
    return log_format_add_place(m, (struct log_place){ .value = (uint8_t)value, .optional = true },
                                ' ');
}

static bool compile_combined(struct log_format_making *m)
{
    return log_format_compile(m, SPAN("%h - - [$time_local] \"%r\" %>s %b \"$http_referer\" "
                                      "\"$http_user_agent\" $request_id")) &&
           add_rare(m, LOG_VALUE_TLS) && add_rare(m, LOG_VALUE_CIPHER) &&
           add_rare(m, LOG_VALUE_TRACEPARENT);
}

static bool add_field_keyed(struct log_format_making *m, const char *key, const char *name)
{
    add_text(m, ",\"");
    add_text(m, key);
    add_text(m, "\":\"");
    if (!log_format_add_field(m, span_text(name), '"'))
        return false;
    add_text(m, "\"");
    m->layout->place[m->layout->count - 1].after = log_format_take_literal(m);
    return true;
}

static bool compile_json(struct log_format_making *m)
{
    m->layout->json = true;
    return add_keyed(m, "time", LOG_VALUE_TIME_MS, false) &&
           add_keyed(m, "peer", LOG_VALUE_PEER, false) &&
           add_keyed(m, "via", LOG_VALUE_VIA, true) &&
           add_keyed(m, "request", LOG_VALUE_REQUEST, false) &&
           add_keyed(m, "host", LOG_VALUE_HOST, false) &&
           add_keyed(m, "status", LOG_VALUE_STATUS, false) &&
           add_keyed(m, "bytes", LOG_VALUE_BYTES, false) &&
           add_keyed(m, "duration_us", LOG_VALUE_DURATION_US, false) &&
           add_field_keyed(m, "referer", "referer") && add_field_keyed(m, "agent", "user-agent") &&
           add_keyed(m, "tls", LOG_VALUE_TLS, true) &&
           add_keyed(m, "cipher", LOG_VALUE_CIPHER, true) &&
           add_keyed(m, "traceparent", LOG_VALUE_TRACEPARENT, true);
}

static bool has_value(const struct log_layout *layout, enum log_value value)
{
    for (unsigned i = 0; i < layout->count; i++)
        if (layout->place[i].value == value)
            return true;
    return false;
}

static bool is_wanted(const char *const *fields, const char *name)
{
    for (; fields != NULL && *fields != NULL; fields++)
        if (strcmp(*fields, name) == 0)
            return true;
    return false;
}

/* Adds what `log-fields` and `log-sample` name, in the order of `words`. */
static bool add_words(struct log_format_making *m, const struct log_layout_request *request)
{
    for (unsigned i = 0; i < WORDS; i++) {
        const struct word *word = &words[i];
        const bool is_last = m->layout->json && word->value == LOG_VALUE_ID;
        const bool wanted = is_wanted(request->fields, word->name) && !is_last &&
                            !has_value(m->layout, word->value);
        if (wanted && !add_keyed(m, word->key, word->value, word->optional))
            return false;
    }
    return request->sample <= 1 || add_keyed(m, "sample", LOG_VALUE_SAMPLE, false);
}

static bool compile_format(struct log_format_making *m, const struct log_layout_request *request)
{
    if (log_layout_is_own(request->format))
        return log_format_compile(m, request->format);
    const bool json = span_equal(request->format, SPAN("json"));
    if (!(json ? compile_json(m) : compile_combined(m)) || !add_words(m, request))
        return false;
    return !json || add_keyed(m, "id", LOG_VALUE_ID, false);
}

bool log_layout_make(struct log_layout *layout, const struct log_layout_request *request,
                     char why[LOG_LAYOUT_WHY_MAX])
{
    *layout = (struct log_layout){ .sample = request->sample > 1 ? request->sample : 1 };
    struct log_format_making m = { .layout = layout,
                                   .text = buf_over(layout->text, sizeof(layout->text)),
                                   .why = why };
    if (!compile_format(&m, request))
        return false;
    if (layout->json && !log_layout_is_own(request->format))
        log_format_add_literal(&m, '}');
    log_format_add_literal(&m, '\n');
    if (m.text.overflow)
        return log_format_refuse(&m, "it has more than %d bytes beside its variables",
                                 LOG_LAYOUT_TEXT_MAX - 1);
    layout->tail = log_format_take_literal(&m);
    layout->around = m.text.len;
    for (unsigned i = 0; i < layout->count; i++)
        layout->around += layout->place[i].is_own ? LOG_OWN_MAX : 0;
    return true;
}

bool log_layout_is_own(struct span format)
{
    return !span_equal(format, SPAN("combined")) && !span_equal(format, SPAN("json"));
}

bool log_layout_is_combined(const struct log_layout_request *request)
{
    return span_equal(request->format, SPAN("combined")) && request->sample <= 1 &&
           (request->fields == NULL || request->fields[0] == NULL);
}
