/* SPDX-License-Identifier: MIT
 *
 * Of the values of a dictionary only integers and Booleans are read. The others are skipped: their
 * strings and inner lists matter only because they can have commas.
 */
#include "http2/priority.h"

static bool key_byte(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || c == '*')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.');
}

static size_t key_length(struct span s)
{
    size_t len = 0;
    while (len < s.len && key_byte(s.at[len], len == 0))
        len++;
    return len;
}

/* How many bytes come before the comma that ends a member, or before the end. SIZE_MAX: a string
 * or an inner list does not end. */
static size_t member_length(struct span s)
{
    bool quoted = false, inner = false;
    size_t i = 0;
    for (; i < s.len && (quoted || inner || s.at[i] != ','); i++) {
        char c = s.at[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '(' || c == ')'))
            inner = c == '(';
    }
    return quoted || inner || i > s.len ? SIZE_MAX : i;
}

/* The value of a member without its parameters: what is between `=` and `;`. Without `=` it is
 * true, as `?1` (RFC 8941 section 3.2). */
static struct span bare_value(struct span member)
{
    if (member.len == 0 || member.at[0] != '=')
        return SPAN("?1");
    size_t end = 1;
    while (end < member.len && member.at[end] != ';')
        end++;
    return span_trim(span_of(member.at + 1, end - 1));
}

/* Applies one member: a key and its value. False: it is malformed. */
static bool read_member(struct span member, struct http2_priority *priority)
{
    size_t key_len = key_length(member);
    if (key_len == 0)
        return false;
    struct span key = span_first(member, key_len);
    struct span rest = span_skip(member, key_len);
    if (rest.len > 0 && rest.at[0] != '=' && rest.at[0] != ';')
        return false;
    struct span value = bare_value(rest);
    if (value.len == 0)
        return false;

    /* The last member of a key counts, even when it has no valid value. */
    if (span_equal(key, SPAN("i")))
        priority->incremental = span_equal(value, SPAN("?1"));
    if (span_equal(key, SPAN("u"))) {
        bool valid = value.len == 1 && value.at[0] >= '0' && value.at[0] <= '7';
        priority->urgency = valid ? (uint8_t)(value.at[0] - '0') : HTTP2_URGENCY_DEFAULT;
    }
    return true;
}

bool http2_priority_read(struct span value, struct http2_priority *ret_priority)
{
    struct http2_priority priority = { .urgency = HTTP2_URGENCY_DEFAULT };
    struct span rest = span_trim(value);

    while (rest.len > 0) {
        size_t len = member_length(rest);
        if (len == SIZE_MAX || !read_member(span_trim(span_first(rest, len)), &priority))
            return false;
        if (len == rest.len)
            break;
        rest = span_trim(span_skip(rest, len + 1));
        if (rest.len == 0)
            return false; /* a comma ends no dictionary */
    }
    *ret_priority = priority;
    return true;
}
