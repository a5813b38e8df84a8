/* SPDX-License-Identifier: MIT
 *
 * Growing text and its escapes. A listing of 10,000 names passes each byte through here, so runs
 * of plain bytes are copied in one piece.
 */
#include "site/text.h"

#include "base/calendar.h"
#include "base/num.h"
#include "base/utf8.h"

#include <stdlib.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

enum { SIZE_AT_FIRST = 8 * 1024 };

/* Makes space for `size` more bytes in one piece. The caller adds what it writes to `len`. Returns
 * NULL, and sets `failed`, without memory. */
static char *reserve_space(struct site_text *text, size_t size)
{
    if (text->failed)
        return NULL;
    if (size <= text->size - text->len)
        return text->at + text->len;
    size_t larger = text->size > 0 ? text->size * 2 : SIZE_AT_FIRST;
    while (larger - text->len < size)
        larger *= 2;
    char *at = realloc(text->at, larger);
    if (at == NULL) {
        text->failed = true;
        return NULL;
    }
    text->at = at;
    text->size = larger;
    return at + text->len;
}

void site_text_reserve(struct site_text *text, size_t count)
{
    if (reserve_space(text, count) != NULL)
        text->len += count;
}

void site_text_add(struct site_text *text, struct span s)
{
    char *room = reserve_space(text, s.len);
    if (room == NULL || s.len == 0)
        return;
    memcpy(room, s.at, s.len);
    text->len += s.len;
}

void site_text_add_u64(struct site_text *text, uint64_t value)
{
    char *room = reserve_space(text, NUM_U64_DIGITS);
    if (room != NULL)
        text->len += num_format_u64(room, value);
}

/* Characters that reorder the text behind them: U+202A to U+202E, and U+2066 to U+2069. With them
 * a name can end in .exe and look as if it ended in .jpg. */
static bool reorders(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static struct span html_escape(char c)
{
    switch (c) {
    case '&':
        return SPAN("&amp;");
    case '<':
        return SPAN("&lt;");
    case '>':
        return SPAN("&gt;");
    case '"':
        return SPAN("&quot;");
    case '\'':
        return SPAN("&#39;");
    default:
        return (unsigned char)c < ' ' || c == 0x7f ? SPAN(REPLACEMENT) : SPAN("");
    }
}

/* `storage` holds a result that is not static. */
static struct span json_escape(char c, char storage[6])
{
    static const char digits[] = "0123456789abcdef";

    switch (c) {
    case '"':
        return SPAN("\\\"");
    case '\\':
        return SPAN("\\\\");
    default:
        if ((unsigned char)c >= ' ')
            return SPAN("");
        memcpy(storage, "\\u00", 4);
        storage[4] = digits[(unsigned char)c >> 4];
        storage[5] = digits[(unsigned char)c & 15];
        return span_of(storage, 6);
    }
}

static void add_escaped(struct site_text *text, struct span s, bool json)
{
    char storage[6];
    uint32_t code;

    while (s.len > 0) {
        size_t plain = 0;
        size_t len = 0; /* of the character that needs an escape */
        struct span instead = SPAN("");
        while (plain < s.len && instead.len == 0) {
            struct span rest = span_skip(s, plain);
            len = (unsigned char)rest.at[0] < 0x80 ? 1 : utf8_decode(rest, &code);
            if (len == 1)
                instead = json ? json_escape(rest.at[0], storage) : html_escape(rest.at[0]);
            else if (len == 0 || (!json && reorders(code)))
                instead = SPAN(REPLACEMENT);
            if (instead.len == 0)
                plain += len;
        }
        site_text_add(text, span_first(s, plain));
        site_text_add(text, instead);
        s = span_skip(s, plain);
        if (instead.len > 0)
            s = span_skip(s, len > 0 ? len : 1);
    }
}

void site_text_add_html(struct site_text *text, struct span s)
{
    add_escaped(text, s, false);
}

void site_text_add_json(struct site_text *text, struct span s)
{
    add_escaped(text, s, true);
}

static bool is_unreserved(char c)
{
    const char lower = ascii_lower(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

void site_text_add_segment(struct site_text *text, struct span s)
{
    static const char digits[] = "0123456789ABCDEF";

    char *const room = reserve_space(text, s.len * 3);
    if (room == NULL)
        return;
    char *out = room;
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.at[i];
        if (is_unreserved(s.at[i])) {
            *out++ = s.at[i];
            continue;
        }
        *out++ = '%';
        *out++ = digits[c >> 4];
        *out++ = digits[c & 15];
    }
    text->len += (size_t)(out - room);
}

void site_text_add_time(struct site_text *text, int64_t seconds, bool brief)
{
    char out[CALENDAR_LEN];
    calendar_format(out, seconds);
    if (brief)
        out[10] = ' ';
    site_text_add(text, span_of(out, brief ? 16 : CALENDAR_LEN));
}
