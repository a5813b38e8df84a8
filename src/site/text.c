/* SPDX-License-Identifier: MIT
 *
 * Growing text and its escapes. A listing of 100,000 names passes each byte
 * through here, so runs of plain bytes are copied in one piece.
 */
#include "site/text.h"

#include "base/num.h"

#include <stdlib.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

enum { SIZE_AT_FIRST = 8 * 1024 };

/* Room for `size` more bytes in one piece, to be claimed by adding to `len`;
 * NULL, and `failed`, without memory. */
static char *room_for(struct site_text *text, size_t size)
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

void site_text_add(struct site_text *text, struct span s)
{
    char *room = room_for(text, s.len);
    if (room == NULL || s.len == 0)
        return;
    memcpy(room, s.at, s.len);
    text->len += s.len;
}

void site_text_add_u64(struct site_text *text, uint64_t value)
{
    char *room = room_for(text, NUM_U64_DIGITS);
    if (room != NULL)
        text->len += num_format_u64(room, value);
}

/* Bytes of the UTF-8 character that `s` begins with (RFC 3629 section 4), or 0
 * when it begins with none. */
static size_t character_len(struct span s)
{
    const unsigned char first = (unsigned char)s.at[0];
    size_t len = first < 0x80   ? 1
                 : first < 0xc2 ? 0
                 : first < 0xe0 ? 2
                 : first < 0xf0 ? 3
                 : first < 0xf5 ? 4
                                : 0;

    if (len > s.len)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)s.at[i] & 0xc0) != 0x80)
            return 0;
    if (len < 3)
        return len;
    const unsigned char second = (unsigned char)s.at[1];
    bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    bool surrogate = first == 0xed && second > 0x9f;
    bool beyond = first == 0xf4 && second > 0x8f;
    return overlong || surrogate || beyond ? 0 : len;
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

/* `storage` holds what is returned, where it is not static. */
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

    while (s.len > 0) {
        size_t plain = 0;
        size_t len = 0; /* of what cannot stand as it is */
        struct span instead = SPAN("");
        while (plain < s.len && instead.len == 0) {
            struct span rest = span_skip(s, plain);
            len = character_len(rest);
            if (len == 0)
                instead = SPAN(REPLACEMENT);
            else if (len == 1)
                instead = json ? json_escape(rest.at[0], storage) : html_escape(rest.at[0]);
            if (instead.len == 0)
                plain += len;
        }
        site_text_add(text, span_first(s, plain));
        site_text_add(text, instead);
        s = span_skip(s, plain);
        if (instead.len > 0)
            s = span_skip(s, 1);
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

    char *const room = room_for(text, s.len * 3);
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

static void write_digits(char *out, int64_t value, unsigned digits)
{
    for (unsigned i = digits; i > 0; i--, value /= 10)
        out[i - 1] = (char)('0' + value % 10);
}

/* Days since 1970-01-01 to the Gregorian date. Years are counted from the first
 * of March, so that the leap day is a year's last. */
static void split_days(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
    days += 719468;                                                  /* from 0000-03-01 */
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097; /* 400 years */
    const int64_t day_of_era = days - era * 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year = day_of_era -
                                (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */

    *ret_day = day_of_year - (153 * month + 2) / 5 + 1;
    *ret_month = month < 10 ? month + 3 : month - 9;
    *ret_year = year_of_era + era * 400 + (*ret_month <= 2);
}

void site_text_add_time(struct site_text *text, int64_t seconds, bool brief)
{
    const int64_t first = INT64_C(-62167219200); /* 0000-01-01T00:00:00Z */
    const int64_t last = INT64_C(253402300799);  /* 9999-12-31T23:59:59Z */
    char out[] = "0000-00-00T00:00:00Z";
    int64_t year, month, day;

    seconds = seconds < first ? first : seconds > last ? last : seconds;
    int64_t second_of_day = seconds % 86400;
    if (second_of_day < 0)
        second_of_day += 86400;
    split_days((seconds - second_of_day) / 86400, &year, &month, &day);
    write_digits(out, year, 4);
    write_digits(out + 5, month, 2);
    write_digits(out + 8, day, 2);
    write_digits(out + 11, second_of_day / 3600, 2);
    write_digits(out + 14, second_of_day / 60 % 60, 2);
    write_digits(out + 17, second_of_day % 60, 2);
    if (brief)
        out[10] = ' ';
    site_text_add(text, span_of(out, brief ? 16 : 20));
}
