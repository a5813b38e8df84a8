/* SPDX-License-Identifier: MIT
 *
 * Numbers appended to a bounded writer. The appends that matter for speed are inline in buf.h.
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
    char text[NUM_HEX_DIGITS];

    CHECK(digits >= 1 && digits <= sizeof(text));
    num_format_hex(text, value);
    buf_add(b, span_of(text + sizeof(text) - digits, digits));
}

/* value / unit in parts of 1 / `per_one`, rounded half up. */
static uint64_t parts_of(uint64_t value, uint64_t unit, unsigned per_one)
{
    return value / unit * per_one + (value % unit * per_one + unit / 2) / unit;
}

void buf_add_figures(struct buf *b, uint64_t value, uint64_t unit)
{
    const bool small = value / unit < 1000; /* no product overflows */
    const uint64_t hundredths = small ? parts_of(value, unit, 100) : UINT64_MAX;
    const uint64_t tenths = small ? parts_of(value, unit, 10) : UINT64_MAX;
    if (hundredths < 1000) {
        buf_add_u64(b, hundredths / 100);
        buf_add_char(b, '.');
        buf_add_char(b, (char)('0' + hundredths / 10 % 10));
        buf_add_char(b, (char)('0' + hundredths % 10));
    } else if (tenths < 1000) {
        buf_add_u64(b, tenths / 10);
        buf_add_char(b, '.');
        buf_add_char(b, (char)('0' + tenths % 10));
    } else {
        buf_add_u64(b, parts_of(value, unit, 1));
    }
}
