/* SPDX-License-Identifier: MIT
 *
 * Traceparent: what goes into the log has no byte that a log line could misread.
 */
#include "base/check.h"
#include "http/traceparent.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct span value = span_of((const char *)data, size);
    const struct span read = http_traceparent_read(value);
    CHECK(read.len == 0 || (read.len == HTTP_TRACEPARENT_BYTES && read.at == value.at));
    for (size_t i = 0; i < read.len; i++)
        CHECK(read.at[i] == '-' || (read.at[i] >= '0' && read.at[i] <= '9') ||
              (read.at[i] >= 'a' && read.at[i] <= 'f'));
    return 0;
}
