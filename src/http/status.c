/* SPDX-License-Identifier: MIT
 *
 * The texts of the status codes. status.def makes them at compile time, so that a code and its
 * texts always match. Nothing is formatted: every result is a span of a string literal.
 */
#include "http/status.h"

#include "base/check.h"

struct status_text {
    struct span line;
    struct span sentence;
};

static const struct status_text *find_text(enum http_status status)
{
    switch (status) {
#define STATUS(code, name, reason_phrase, sentence_text) \
    case HTTP_##name: { \
        static const struct status_text text = { \
            .line = SPAN("HTTP/1.1 " #code " " reason_phrase "\r\n"), \
            .sentence = SPAN(sentence_text), \
        }; \
        return &text; \
    }
#include "http/status.def"
#undef STATUS
    }
    return NULL;
}

struct span http_status_line(enum http_status status)
{
    const struct status_text *text = find_text(status);
    CHECK(text != NULL);
    return text->line;
}

struct span http_status_sentence(enum http_status status)
{
    const struct status_text *text = find_text(status);
    CHECK(text != NULL);
    return text->sentence;
}
