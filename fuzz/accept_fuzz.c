/* SPDX-License-Identifier: MIT
 *
 * Negotiation: only an available coding is chosen, and weights stay in range.
 */
#include "base/check.h"
#include "http/accept.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span field = span_of((const char *)data, size);
    const unsigned identity = 1u << HTTP_CODING_IDENTITY;
    for (unsigned available = identity; available < 1u << HTTP_CODING_COUNT; available++) {
        if (!(available & identity))
            continue;
        enum http_coding coding = http_accept_coding(true, field, available);
        CHECK(coding < HTTP_CODING_COUNT && (available & 1u << coding));
    }
    int weight = http_accept_weight(true, field, SPAN("text/html"));
    CHECK(weight >= 0 && weight <= 1000);
    return 0;
}
