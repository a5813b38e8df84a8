/* SPDX-License-Identifier: MIT
 *
 * Years begin on the first of March here. The leap day is then the last day of a year, and
 * months need no table. 400 years are one period of 146097 days.
 */
#include "base/calendar.h"

enum {
    DAY_S = 86400,
    PERIOD_DAYS = 146097,
    MARCH_0_DAY = 719468, /* days from 0000-03-01 to 1970-01-01 */
};

struct calendar calendar_of(int64_t seconds)
{
    if (seconds < CALENDAR_FIRST)
        seconds = CALENDAR_FIRST;
    if (seconds > CALENDAR_LAST)
        seconds = CALENDAR_LAST;
    const int64_t from_first = seconds - CALENDAR_FIRST;
    const int second = (int)(from_first % DAY_S);
    const int days = (int)(from_first / DAY_S + CALENDAR_FIRST / DAY_S + MARCH_0_DAY);
    const int period = (days + PERIOD_DAYS) / PERIOD_DAYS - 1; /* -1 before 0000-03-01 */
    const int day_of_period = days - period * PERIOD_DAYS;
    const int year = (day_of_period - day_of_period / 1460 + day_of_period / 36524 -
                      day_of_period / (PERIOD_DAYS - 1)) /
                     365;
    const int day = day_of_period - (365 * year + year / 4 - year / 100);
    const int month = (5 * day + 2) / 153; /* 0 is March */
    return (struct calendar){
        .year = period * 400 + year + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = day - (153 * month + 2) / 5 + 1,
        .hour = second / 3600,
        .minute = second / 60 % 60,
        .second = second % 60,
    };
}

int64_t calendar_seconds(const struct calendar *when)
{
    const int month = when->month > 2 ? when->month - 3 : when->month + 9;
    const int year = when->year - (when->month <= 2) + 400; /* not negative */
    const int64_t days = INT64_C(365) * year + year / 4 - year / 100 + year / 400 +
                         (153 * month + 2) / 5 + when->day - 1;
    return (days - PERIOD_DAYS - MARCH_0_DAY) * DAY_S + when->hour * 3600 + when->minute * 60 +
           when->second;
}

int calendar_days(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

const char *calendar_month(int month)
{
    static const char names[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    return names[month - 1];
}

static void format_digits(char *out, int value, int digits)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        out[i] = (char)('0' + value % 10);
}

void calendar_format(char out[CALENDAR_LEN], int64_t seconds)
{
    const struct calendar when = calendar_of(seconds);
    memcpy(out, "0000-00-00T00:00:00Z", CALENDAR_LEN);
    format_digits(out, when.year, 4);
    format_digits(out + 5, when.month, 2);
    format_digits(out + 8, when.day, 2);
    format_digits(out + 11, when.hour, 2);
    format_digits(out + 14, when.minute, 2);
    format_digits(out + 17, when.second, 2);
}
