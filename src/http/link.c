/* SPDX-License-Identifier: MIT
 *
 * A target or a quoted string that is not closed reaches to the end of the field. Where it should
 * end is unknown, so the rest stays one link.
 */
#include "http/link.h"

/* The index of the first `separator` outside of targets and quoted strings, or the length. */
static size_t find_end(struct span text, char separator)
{
    char closing = '\0'; /* of the target or the string at this place; NUL: of none */

    for (size_t i = 0; i < text.len; i++) {
        const char c = text.at[i];
        if (closing != '\0') {
            i += c == '\\' && closing == '"';
            closing = c == closing ? '\0' : closing;
        } else if (c == separator) {
            return i;
        } else {
            closing = c == '<' ? '>' : c == '"' ? '"' : '\0';
        }
    }
    return text.len;
}

/* Takes the part before the next separator, trimmed. */
static struct span take_part(struct span *text, char separator)
{
    const size_t end = find_end(*text, separator);
    const struct span part = span_trim(span_first(*text, end));

    *text = span_skip(*text, end < text->len ? end + 1 : end);
    return part;
}

bool http_link_next(struct span *field, struct span *ret_link)
{
    while (field->len > 0) {
        *ret_link = take_part(field, ',');
        if (ret_link->len > 0)
            return true;
    }
    return false;
}

static struct span unquoted(struct span value)
{
    const bool quoted = value.len >= 2 && value.at[0] == '"' && value.at[value.len - 1] == '"';
    return quoted ? span_of(value.at + 1, value.len - 2) : value;
}

/* Whether the relations, separated by spaces, have one of a hint. */
static bool has_hint(struct span relations)
{
    while (relations.len > 0) {
        const struct span relation = take_part(&relations, ' ');
        if (span_equal_nocase(relation, SPAN("preload")) ||
            span_equal_nocase(relation, SPAN("modulepreload")) ||
            span_equal_nocase(relation, SPAN("preconnect")))
            return true;
    }
    return false;
}

bool http_link_is_hint(struct span link)
{
    const struct span target = take_part(&link, ';');

    if (target.len < 2 || target.at[0] != '<' || target.at[target.len - 1] != '>')
        return false;
    while (link.len > 0) {
        struct span value = take_part(&link, ';');
        const struct span name = take_part(&value, '=');
        /* Only the first `rel` counts (RFC 8288 section 3.3). */
        if (span_equal_nocase(name, SPAN("rel")))
            return has_hint(unquoted(span_trim(value)));
    }
    return false;
}
