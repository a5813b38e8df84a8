/* SPDX-License-Identifier: MIT
 *
 * Dates: a text that is read as a date is written and read back as the same date.
 */
#include "base/check.h"
#include "http/date.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now_s = 1795248000;
    int64_t seconds = 0;
    if (!http_date_parse(span_of((const char *)data, size), now_s, &seconds))
        return 0;
    char text[HTTP_DATE_LEN];
    http_date_format(text, seconds);
    int64_t again = 0;
    CHECK(http_date_parse(span_of(text, HTTP_DATE_LEN), now_s, &again));
    CHECK(again == seconds || seconds < 0);
    return 0;
}
