/* SPDX-License-Identifier: MIT
 *
 * HTTP dates (RFC 9110 section 5.6.7), in seconds since 1970-01-01 UTC. No time zone, locale or
 * clock is involved.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

enum { HTTP_DATE_LEN = 29 }; /* Sun, 06 Nov 1994 08:49:37 GMT */

/* Writes the preferred form, HTTP_DATE_LEN bytes without a NUL. `seconds` is clamped to the
 * years 1970 to 9999. */
void http_date_format(char out[HTTP_DATE_LEN], int64_t seconds);

/* Reads any of the three forms: IMF-fixdate, asctime, and rfc850 with the 50-year rule against
 * `now_seconds`. It is strict. A day name must be valid, but it is not compared with the date.
 * Numbers must be in range, and nothing may follow. Second 60 is valid only in 23:59:60. Returns
 * false for any other text. Years before 1970 give negative seconds. */
bool http_date_parse(struct span text, int64_t now_seconds, int64_t *ret_seconds);
