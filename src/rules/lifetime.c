/* SPDX-License-Identifier: MIT
 *
 * Cache-Control has names of its own for single caches, which end with the same words (RFC 9213
 * section 2).
 */
#include "rules/lifetime.h"

#include "http/list.h"

/* Whether a directive lets a cache store an answer, or use it for some time (RFC 9111 section
 * 5.2.2, RFC 5861, RFC 8246). A lifetime of 0 seconds is none. */
static bool directive_grants(struct span directive)
{
    static const char *const granting[] = { "max-age",   "s-maxage", "stale-while-revalidate",
                                            "immutable", "public",   "stale-if-error" };
    const struct span name = span_trim(span_take(&directive, '='));
    if (span_equal(span_trim(directive), SPAN("0")))
        return false;
    for (size_t i = 0; i < sizeof(granting) / sizeof(granting[0]); i++)
        if (span_equal_nocase(name, span_text(granting[i])))
            return true;
    return false;
}

static const struct span suffix = SPAN("Cache-Control");

/* Cache-Control, and the names of its kind for single caches. */
static bool controls_caches(struct span name)
{
    return span_equal_nocase(name, SPAN("Surrogate-Control")) ||
           (name.len >= suffix.len &&
            span_equal_nocase(span_skip(name, name.len - suffix.len), suffix));
}

bool rules_lifetime_given(struct span line)
{
    const struct span name = span_trim(span_take(&line, ':'));
    struct span directive;
    if (span_equal_nocase(name, SPAN("Expires")))
        return true;
    if (!controls_caches(name))
        return false;
    while (http_list_next(&line, &directive))
        if (directive_grants(directive))
            return true;
    return false;
}

static bool is_name_byte(char c)
{
    c = ascii_lower(c);
    return (c >= 'a' && c <= 'z') || c == '-';
}

/* Also where the list is malformed: caches read it in different ways. */
static bool has_word(struct span text, struct span word)
{
    for (size_t i = 0; i + word.len <= text.len; i++) {
        const size_t end = i + word.len;
        if (span_equal_nocase(span_of(text.at + i, word.len), word) &&
            (i == 0 || !is_name_byte(text.at[i - 1])) &&
            (end == text.len || !is_name_byte(text.at[end])))
            return true;
    }
    return false;
}

bool rules_lifetime_is_shared(struct span line)
{
    const struct span name = span_trim(span_take(&line, ':'));
    if (!span_equal_nocase(name, suffix))
        return controls_caches(name);
    return has_word(line, SPAN("public")) || has_word(line, SPAN("s-maxage")) ||
           has_word(line, SPAN("must-revalidate"));
}
