/* SPDX-License-Identifier: MIT
 *
 * The contents of a line of the access log, in their order: a table of values with literal text
 * around them. It is made once, from the settings `log-format`, `log-fields` and `log-sample`. The
 * format `combined` without fields has no table, because log/access.c writes it directly.
 *
 * log/value.def has the values.
 */
#pragma once

#include "base/check.h"
#include "base/escape.h"
#include "http/request.h"
#include "log/access.h"
#include "log/text.h"

enum log_value {
#define VALUE(name, ...) LOG_VALUE_##name,
#include "log/value.def"
#undef VALUE
    LOG_VALUE_FIELD, /* a field of the request */
};

enum {
    LOG_LAYOUT_TEXT_MAX = 1024, /* bytes of literal text */
    LOG_OWN_MAX = 40,           /* bytes of a value that weir writes */
};

/* One value and the text around it. */
struct log_place {
    uint8_t value;    /* enum log_value */
    uint8_t field;    /* of LOG_VALUE_FIELD: enum http_field */
    bool is_own;      /* written by weir: no byte needs escaping */
    bool optional;    /* without a value, the text around it is left out, too */
    uint8_t escaping; /* enum escape */
    struct span before, after;
};

struct log_layout {
    unsigned count;
    bool json;       /* an empty value stays empty; else it becomes `-` */
    uint32_t fields; /* of the request, a bit for each enum http_field */
    bool users;      /* a line has the name of the user */
    unsigned sample; /* one of so many requests without an error is logged; 1: each */
    size_t around;   /* bytes of literal text, and the most of values that weir writes */
    struct span tail;
    struct log_place place[LOG_TEXTS_MAX];

    size_t used; /* of `text`, which has the literal text */
    char text[LOG_LAYOUT_TEXT_MAX];
};

/* The words that `log-fields` allows, NULL at the end. */
extern const char *const log_layout_words[];

/* What a layout is made from. */
struct log_layout_request {
    struct span format;        /* combined, json, or a text with variables */
    const char *const *fields; /* words of log_layout_words, NULL at the end; NULL: none */
    unsigned sample;           /* 0 and 1: each request is logged */
};

enum { LOG_LAYOUT_WHY_MAX = 256 };

/* Fills `layout`, which must not be moved, because it points into itself. False: the format is
 * wrong, and `why` says how to write it. */
MUST_USE bool log_layout_make(struct log_layout *layout, const struct log_layout_request *request,
                              char why[LOG_LAYOUT_WHY_MAX]);

/* Whether lines are plain `combined`, for which log/access.c needs no layout. */
bool log_layout_is_combined(const struct log_layout_request *request);

/* Whether a line is written for an answer with this status to the request `id`. Errors have one
 * each. Of the others, ids choose: they are spread evenly, in every thread and process. */
static inline bool log_layout_takes(const struct log_layout *layout, unsigned status, uint64_t id)
{
    return layout->sample <= 1 || status >= 400 || id < UINT64_MAX / layout->sample;
}

/* The place of a field of the request in log_access_details.field. */
static inline unsigned log_layout_slot(const struct log_layout *layout, enum http_field field)
{
    return (unsigned)__builtin_popcount(layout->fields & ((1u << field) - 1));
}

/* Whether the text is a format of its own, and neither `combined` nor `json`. */
bool log_layout_is_own(struct span format);
