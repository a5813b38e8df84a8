/* SPDX-License-Identifier: MIT
 *
 * Reads and writes the readable form of bytes (escape.h).
 */
#include "escape.h"

#include "base/num.h"

#include <stdlib.h>

/* One backslash escape at the front of `text`. Returns its length in `text`, or 0. */
static size_t take_escape(struct span text, char *ret_byte)
{
    static const char plain[][2] = {
        { 'r', '\r' }, { 'n', '\n' }, { 't', '\t' }, { '0', '\0' }, { '\\', '\\' },
    };
    if (text.len < 2)
        return 0;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (text.at[1] != plain[i][0])
            continue;
        *ret_byte = plain[i][1];
        return 2;
    }
    if (text.at[1] != 'x' || text.len < 4)
        return 0;
    int high = num_hex_digit(text.at[2]);
    int low = num_hex_digit(text.at[3]);
    if (high < 0 || low < 0)
        return 0;
    *ret_byte = (char)(high << 4 | low);
    return 4;
}

/* Text without braces. */
static const char *expand_plain(FILE *out, struct span text)
{
    while (text.len > 0) {
        char byte = text.at[0];
        size_t used = 1;
        if (byte == '\\') {
            used = take_escape(text, &byte);
            if (used == 0)
                return "a backslash that begins no escape";
        } else if (byte < ' ' || byte > '~') {
            return "a byte that must be written as \\xHH";
        }
        (void)fputc(byte, out);
        text = span_skip(text, used);
    }
    return NULL;
}

/* Expands the text between two braces. */
static const char *expand_braces(FILE *out, struct span inner, const struct escape_tags *tags)
{
    if (span_starts(inner, SPAN("etag "))) {
        if (!tags)
            return "{etag} is not known here";
        struct span tag = tags->etag(tags->context, span_skip(inner, 5));
        if (tag.len == 0)
            return "{etag} of a file that has none";
        (void)fwrite(tag.at, 1, tag.len, out);
        return NULL;
    }
    const char *star = memchr(inner.at, '*', inner.len);
    uint64_t times = 0;
    if (!star || !num_parse_u64(span_of(inner.at, (size_t)(star - inner.at)), &times))
        return "braces without a repetition or a name";
    struct span what = span_skip(inner, (size_t)(star - inner.at) + 1);
    for (uint64_t i = 0; i < times; i++) {
        const char *wrong = expand_plain(out, what);
        if (wrong)
            return wrong;
    }
    return NULL;
}

const char *escape_expand(FILE *out, struct span text, const struct escape_tags *tags)
{
    while (text.len > 0) {
        const char *open = memchr(text.at, '{', text.len);
        size_t plain = open ? (size_t)(open - text.at) : text.len;
        const char *wrong = expand_plain(out, span_first(text, plain));
        if (wrong)
            return wrong;
        if (!open)
            return NULL;
        text = span_skip(text, plain + 1);
        const char *close = memchr(text.at, '}', text.len);
        if (!close)
            return "a brace that is not closed";
        size_t inner = (size_t)(close - text.at);
        wrong = expand_braces(out, span_first(text, inner), tags);
        if (wrong)
            return wrong;
        text = span_skip(text, inner + 1);
    }
    return NULL;
}

const char *escape_bytes(struct span text, const struct escape_tags *tags, char **ret_bytes,
                         size_t *ret_len)
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    CHECK(out);
    const char *wrong = escape_expand(out, text, tags);
    CHECK(fclose(out) == 0);
    if (wrong) {
        free(bytes);
        return wrong;
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return NULL;
}

void escape_show(FILE *out, struct span bytes, size_t most)
{
    struct span shown = span_first(bytes, most);
    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.at[i];
        if (c == '\r')
            (void)fputs("\\r", out);
        else if (c == '\n')
            (void)fputs("\\n\n", out);
        else if (c == '\\')
            (void)fputs("\\\\", out);
        else if (c >= ' ' && c <= '~')
            (void)fputc(c, out);
        else
            (void)fprintf(out, "\\x%02x", (unsigned)(unsigned char)c);
    }
    if (bytes.len > most)
        (void)fprintf(out, "... (%zu bytes)", bytes.len);
}
