/* SPDX-License-Identifier: MIT
 *
 * The three forms of HTTP dates (RFC 9110 section 5.6.7), over base/calendar.h.
 */
#include "http/date.h"

#include "base/calendar.h"

enum {
    NAME_LEN = 3,          /* of the short day and month names */
    YEAR_MAX = 9999,       /* a year has at most four digits in every form */
    FUTURE_YEARS_MAX = 50, /* rfc850: a year further ahead is in the century before */
};

static const char weekdays[] = "SunMonTueWedThuFriSat";

static void put_digits(char *out, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

void http_date_format(char out[HTTP_DATE_LEN], int64_t seconds)
{
    seconds = seconds < 0 ? 0 : seconds > CALENDAR_LAST ? CALENDAR_LAST : seconds;
    struct calendar when = calendar_of(seconds);
    int weekday = (int)((seconds / 86400 + 4) % 7); /* 1970 began on a Thursday */

    memcpy(out, "day, 00 mon 0000 00:00:00 GMT", HTTP_DATE_LEN);
    memcpy(out, weekdays + weekday * NAME_LEN, NAME_LEN);
    put_digits(out + 5, when.day, 2);
    memcpy(out + 8, calendar_month(when.month), NAME_LEN);
    put_digits(out + 12, when.year, 4);
    put_digits(out + 17, when.hour, 2);
    put_digits(out + 20, when.minute, 2);
    put_digits(out + 23, when.second, 2);
}

/* The take_* functions remove what they read from the front of `text`. After false, the rest of
 * `text` is unspecified, and the text is no date. */

static bool take_literal(struct span *text, struct span literal)
{
    if (!span_starts(*text, literal))
        return false;
    *text = span_skip(*text, literal.len);
    return true;
}

static bool take_digits(struct span *text, size_t digits, int *ret_value)
{
    if (text->len < digits)
        return false;
    int value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (text->at[i] < '0' || text->at[i] > '9')
            return false;
        value = value * 10 + (text->at[i] - '0');
    }
    *text = span_skip(*text, digits);
    *ret_value = value;
    return true;
}

/* The day of asctime: two digits, or a space and one. */
static bool take_padded_day(struct span *text, int *ret_day)
{
    if (take_literal(text, SPAN(" ")))
        return take_digits(text, 1, ret_day);
    return take_digits(text, 2, ret_day);
}

/* Names are case-sensitive. */

static bool take_weekday(struct span *text, int *ret_weekday)
{
    for (int i = 0; i < 7; i++) {
        if (!take_literal(text, span_of(weekdays + i * NAME_LEN, NAME_LEN)))
            continue;
        *ret_weekday = i;
        return true;
    }
    return false;
}

static bool take_month(struct span *text, int *ret_month)
{
    for (int month = 1; month <= 12; month++) {
        if (!take_literal(text, span_of(calendar_month(month), NAME_LEN)))
            continue;
        *ret_month = month;
        return true;
    }
    return false;
}

static bool take_time(struct span *text, struct calendar *when)
{
    return take_digits(text, 2, &when->hour) && take_literal(text, SPAN(":")) &&
           take_digits(text, 2, &when->minute) && take_literal(text, SPAN(":")) &&
           take_digits(text, 2, &when->second);
}

/* The rest of each of the three forms, after the short day name. */

static bool read_imf_fixdate(struct span text, struct calendar *when)
{
    return take_literal(&text, SPAN(", ")) && take_digits(&text, 2, &when->day) &&
           take_literal(&text, SPAN(" ")) && take_month(&text, &when->month) &&
           take_literal(&text, SPAN(" ")) && take_digits(&text, 4, &when->year) &&
           take_literal(&text, SPAN(" ")) && take_time(&text, when) &&
           take_literal(&text, SPAN(" GMT")) && text.len == 0;
}

static bool read_asctime(struct span text, struct calendar *when)
{
    return take_literal(&text, SPAN(" ")) && take_month(&text, &when->month) &&
           take_literal(&text, SPAN(" ")) && take_padded_day(&text, &when->day) &&
           take_literal(&text, SPAN(" ")) && take_time(&text, when) &&
           take_literal(&text, SPAN(" ")) && take_digits(&text, 4, &when->year) && text.len == 0;
}

static bool read_rfc850(struct span text, int weekday, struct calendar *when)
{
    static const struct span day_name_rest[] = {
        { "day", 3 },   { "day", 3 }, { "sday", 4 },  { "nesday", 6 },
        { "rsday", 5 }, { "day", 3 }, { "urday", 5 },
    };
    return take_literal(&text, day_name_rest[weekday]) && take_literal(&text, SPAN(", ")) &&
           take_digits(&text, 2, &when->day) && take_literal(&text, SPAN("-")) &&
           take_month(&text, &when->month) && take_literal(&text, SPAN("-")) &&
           take_digits(&text, 2, &when->year) && take_literal(&text, SPAN(" ")) &&
           take_time(&text, when) && take_literal(&text, SPAN(" GMT")) && text.len == 0;
}

/* Adds the century to a year of two digits. It is the latest one with a date at most 50 years
 * ahead of now (RFC 9110 section 5.6.7). */
static void add_century(struct calendar *when, int64_t now_seconds)
{
    struct calendar limit = calendar_of(now_seconds < 0 ? 0 : now_seconds);
    limit.year += FUTURE_YEARS_MAX;
    when->year += limit.year / 100 * 100;
    if (calendar_seconds(when) > calendar_seconds(&limit))
        when->year -= 100;
}

static bool is_valid(const struct calendar *when)
{
    if (when->year > YEAR_MAX || when->day < 1 ||
        when->day > calendar_days(when->year, when->month))
        return false;
    if (when->hour > 23 || when->minute > 59)
        return false;
    bool leap_second = when->hour == 23 && when->minute == 59 && when->second == 60;
    return when->second < 60 || leap_second;
}

bool http_date_parse(struct span text, int64_t now_seconds, int64_t *ret_seconds)
{
    struct calendar when = { .month = 1 };
    int weekday = 0;
    if (!take_weekday(&text, &weekday) || text.len == 0)
        return false;

    if (text.at[0] == ',') {
        if (!read_imf_fixdate(text, &when))
            return false;
    } else if (text.at[0] == ' ') {
        if (!read_asctime(text, &when))
            return false;
    } else {
        if (!read_rfc850(text, weekday, &when))
            return false;
        add_century(&when, now_seconds);
    }
    if (!is_valid(&when))
        return false;
    *ret_seconds = calendar_seconds(&when);
    return true;
}
