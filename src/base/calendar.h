/* SPDX-License-Identifier: MIT
 *
 * The Gregorian calendar in UTC: seconds since 1970-01-01 to a date, and back. The C
 * library's calendar is not used, because it consults the time zone, the locale and
 * the environment.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct calendar {
    int year;                 /* 0 is 1 BC */
    int month, day;           /* from 1 */
    int hour, minute, second; /* from 0 */
};

#define CALENDAR_FIRST INT64_C(-62167219200) /* 0000-01-01T00:00:00Z, in seconds since 1970 */
#define CALENDAR_LAST  INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

/* The date and time of `seconds`, which is clamped to the years 0 to 9999. */
struct calendar calendar_of(int64_t seconds);

/* The inverse. `when` holds a date that exists; its second may be 60. */
int64_t calendar_seconds(const struct calendar *when);

/* The days of a month; both from 1. */
int calendar_days(int year, int month);

/* Three letters and a NUL: Jan to Dec. */
const char *calendar_month(int month);

/* 2026-11-21T08:00:00Z (RFC 3339), CALENDAR_LEN bytes, no NUL. */
enum { CALENDAR_LEN = 20 };
void calendar_format(char out[CALENDAR_LEN], int64_t seconds);
