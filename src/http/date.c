/* SPDX-License-Identifier: MIT
 *
 * The three forms of HTTP dates (RFC 9110 section 5.6.7), written and read with
 * integer arithmetic on the Gregorian calendar. The C library's calendar is not
 * used: it consults the time zone, the locale and the environment.
 */
#include "http/date.h"

#include "base/check.h"

#define DAY_S INT64_C(86400)

enum {
    NAME_LEN = 3,           /* of the short day and month names */
    YEAR_MAX = 9999,        /* all forms have room for four digits at most */
    YEAR_1970_DAY = 719528, /* 1970-01-01, in days since 0000-01-01 */
    DAYS_IN_400_YEARS = 146097,
    FUTURE_YEARS_MAX = 50, /* rfc850: further ahead than this means the century before */
};

/* A day and a time of it. Year 0 is 1 BC, and a leap year. */
struct civil {
    int year;
    int month; /* 0 is January */
    int day;   /* 1 is the first */
    int hour;
    int minute;
    int second; /* 60 only in 23:59:60, a leap second */
};

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

/* Days of the year before each month's first, without a leap day. */
static const int days_before_month[] = {
    0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365
};

static bool is_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
    int leap_day = month == 1 && is_leap_year(year) ? 1 : 0;
    return days_before_month[month + 1] - days_before_month[month] + leap_day;
}

/* Days from 0000-01-01 to the first of January of `year`, which is not negative. */
static int64_t days_before_year(int year)
{
    if (year == 0)
        return 0;
    int past = year - 1;
    return (int64_t)year * 365 + past / 4 - past / 100 + past / 400 + 1;
}

static int64_t seconds_of(const struct civil *when)
{
    int leap_day = when->month > 1 && is_leap_year(when->year) ? 1 : 0;
    int64_t day = days_before_year(when->year) + days_before_month[when->month] + leap_day +
                  when->day - 1 - YEAR_1970_DAY;
    return day * DAY_S + when->hour * 3600 + when->minute * 60 + when->second;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

/* The end of the year 9999. */
static const int64_t last_second = (25 * DAYS_IN_400_YEARS - YEAR_1970_DAY) * DAY_S - 1;

/* `seconds` is from 1970 to last_second. */
static struct civil civil_of(int64_t seconds)
{
    int64_t day = seconds / DAY_S + YEAR_1970_DAY;
    int second_of_day = (int)(seconds % DAY_S);

    /* The estimate is the year or the one behind it. */
    int year = (int)(day * 400 / DAYS_IN_400_YEARS) + 1;
    while (days_before_year(year) > day)
        year--;
    int day_of_year = (int)(day - days_before_year(year));

    int month = 0;
    while (day_of_year >= days_in_month(year, month))
        day_of_year -= days_in_month(year, month++);

    return (struct civil){
        .year = year,
        .month = month,
        .day = day_of_year + 1,
        .hour = second_of_day / 3600,
        .minute = second_of_day / 60 % 60,
        .second = second_of_day % 60,
    };
}

static void put_digits(char *out, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

void http_date_format(char out[HTTP_DATE_LEN], int64_t seconds)
{
    seconds = clamp(seconds, 0, last_second);
    struct civil when = civil_of(seconds);
    int weekday = (int)((seconds / DAY_S + 4) % 7); /* 1970 began on a Thursday */

    memcpy(out, "day, 00 mon 0000 00:00:00 GMT", HTTP_DATE_LEN);
    memcpy(out, weekdays + weekday * NAME_LEN, NAME_LEN);
    put_digits(out + 5, when.day, 2);
    memcpy(out + 8, months + when.month * NAME_LEN, NAME_LEN);
    put_digits(out + 12, when.year, 4);
    put_digits(out + 17, when.hour, 2);
    put_digits(out + 20, when.minute, 2);
    put_digits(out + 23, when.second, 2);
}

/* The take_* functions read from the front of `text`; on false it is wherever
 * reading stopped, and the date is none. */

static bool take(struct span *text, struct span literal)
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
    if (take(text, SPAN(" ")))
        return take_digits(text, 1, ret_day);
    return take_digits(text, 2, ret_day);
}

/* One of `count` three-letter names; names are case-sensitive. */
static bool take_name(struct span *text, const char *names, int count, int *ret_index)
{
    if (text->len < NAME_LEN)
        return false;
    for (int i = 0; i < count; i++) {
        if (memcmp(text->at, names + i * NAME_LEN, NAME_LEN) == 0) {
            *text = span_skip(*text, NAME_LEN);
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static bool take_month(struct span *text, int *ret_month)
{
    return take_name(text, months, 12, ret_month);
}

static bool take_time(struct span *text, struct civil *when)
{
    return take_digits(text, 2, &when->hour) && take(text, SPAN(":")) &&
           take_digits(text, 2, &when->minute) && take(text, SPAN(":")) &&
           take_digits(text, 2, &when->second);
}

/* What follows the short day name in each of the three forms. */

static bool read_imf_fixdate(struct span text, struct civil *when)
{
    return take(&text, SPAN(", ")) && take_digits(&text, 2, &when->day) && take(&text, SPAN(" ")) &&
           take_month(&text, &when->month) && take(&text, SPAN(" ")) &&
           take_digits(&text, 4, &when->year) && take(&text, SPAN(" ")) && take_time(&text, when) &&
           take(&text, SPAN(" GMT")) && text.len == 0;
}

static bool read_asctime(struct span text, struct civil *when)
{
    return take(&text, SPAN(" ")) && take_month(&text, &when->month) && take(&text, SPAN(" ")) &&
           take_padded_day(&text, &when->day) && take(&text, SPAN(" ")) && take_time(&text, when) &&
           take(&text, SPAN(" ")) && take_digits(&text, 4, &when->year) && text.len == 0;
}

static bool read_rfc850(struct span text, int weekday, struct civil *when)
{
    static const struct span day_name_rest[] = {
        { "day", 3 },   { "day", 3 }, { "sday", 4 },  { "nesday", 6 },
        { "rsday", 5 }, { "day", 3 }, { "urday", 5 },
    };
    return take(&text, day_name_rest[weekday]) && take(&text, SPAN(", ")) &&
           take_digits(&text, 2, &when->day) && take(&text, SPAN("-")) &&
           take_month(&text, &when->month) && take(&text, SPAN("-")) &&
           take_digits(&text, 2, &when->year) && take(&text, SPAN(" ")) && take_time(&text, when) &&
           take(&text, SPAN(" GMT")) && text.len == 0;
}

/* Gives a year of two digits its century: the latest that does not put the date
 * more than 50 years ahead of now (RFC 9110 section 5.6.7). */
static void add_century(struct civil *when, int64_t now_seconds)
{
    struct civil limit = civil_of(clamp(now_seconds, 0, last_second));
    limit.year += FUTURE_YEARS_MAX;
    when->year += limit.year / 100 * 100;
    if (seconds_of(when) > seconds_of(&limit))
        when->year -= 100;
}

static bool is_valid(const struct civil *when)
{
    if (when->year > YEAR_MAX || when->day < 1 ||
        when->day > days_in_month(when->year, when->month))
        return false;
    if (when->hour > 23 || when->minute > 59)
        return false;
    bool leap_second = when->hour == 23 && when->minute == 59 && when->second == 60;
    return when->second < 60 || leap_second;
}

bool http_date_parse(struct span text, int64_t now_seconds, int64_t *ret_seconds)
{
    struct civil when = { 0 };
    int weekday = 0;
    if (!take_name(&text, weekdays, 7, &weekday) || text.len == 0)
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
    *ret_seconds = seconds_of(&when);
    return true;
}
