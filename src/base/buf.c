/* SPDX-License-Identifier: MIT
 *
 * Numbers appended to a bounded writer; the appends that matter for speed are
 * inline in buf.h.
 */
#include "base/buf.h"

#include "base/check.h"
#include "base/num.h"

void buf_add_u64(struct buf *b, uint64_t value)
{
    char digits[NUM_U64_DIGITS];

    buf_add(b, span_of(digits, num_format_u64(digits, value)));
}

void buf_add_hex(struct buf *b, uint64_t value, unsigned digits)
{
    char text[16];

    CHECK(digits >= 1 && digits <= sizeof(text));
    for (unsigned i = digits; i > 0; i--) {
        text[i - 1] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    buf_add(b, span_of(text, digits));
}
