/* SPDX-License-Identifier: MIT
 *
 * A span is a borrowed run of bytes. It owns nothing, has no NUL at its end, and is passed by
 * value. The function that returns one says how long it is valid.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *at;
    size_t len;
};

/* A span over a string literal. */
#define SPAN(literal) ((struct span){ "" literal, sizeof(literal) - 1 })

static inline struct span span_of(const char *at, size_t len)
{
    return (struct span){ at, len };
}

static inline struct span span_text(const char *text)
{
    return (struct span){ text, strlen(text) };
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool span_starts(struct span s, struct span prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.at, prefix.at, prefix.len) == 0);
}

static inline bool span_ends(struct span s, struct span suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.at + s.len - suffix.len, suffix.at, suffix.len) == 0);
}

/* The span without its first `count` bytes; `count` is at most its length. */
static inline struct span span_skip(struct span s, size_t count)
{
    return (struct span){ s.at + count, s.len - count };
}

/* The first `count` bytes of the span, or all of it when it is shorter. */
static inline struct span span_first(struct span s, size_t count)
{
    return (struct span){ s.at, s.len < count ? s.len : count };
}

static inline char ascii_lower(char c)
{
    return (c >= 'A' && c <= 'Z') ? (char)(c + ('a' - 'A')) : c;
}

/* Equality without regard to ASCII case, as field names and most tokens have it. */
static inline bool span_equal_nocase(struct span a, struct span b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (ascii_lower(a.at[i]) != ascii_lower(b.at[i]))
            return false;
    return true;
}

/* The span without spaces and tabs at either end (OWS, RFC 9110 section 5.6.3). */
static inline struct span span_trim(struct span s)
{
    while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
        s = span_skip(s, 1);
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Takes the part of *rest before the next `end`, and the `end`. Without one, takes all. */
static inline struct span span_take(struct span *rest, char end)
{
    const char *at = rest->len > 0 ? (const char *)memchr(rest->at, end, rest->len) : NULL;
    const struct span part = span_first(*rest, at ? (size_t)(at - rest->at) : rest->len);
    *rest = span_skip(*rest, part.len + (at != NULL));
    return part;
}

/* Takes the next word of *rest: spaces and tabs separate words. Empty: there is none. */
static inline struct span span_take_word(struct span *rest)
{
    const struct span text = span_trim(*rest);
    size_t len = 0;
    while (len < text.len && text.at[len] != ' ' && text.at[len] != '\t')
        len++;
    *rest = span_skip(text, len);
    return span_first(text, len);
}
