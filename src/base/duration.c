/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/buf.h"
#include "base/num.h"

/* Rounds `ns` to `per_unit` parts of a unit of `unit_ns`, half of one up. */
static uint64_t rounded(uint64_t ns, uint64_t unit_ns, uint64_t per_unit)
{
    uint64_t part_ns = unit_ns / per_unit;
    return ns / part_ns + (ns % part_ns >= (part_ns + 1) / 2);
}

struct duration_text duration_format(uint64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } units[] = { { 1000, " us" }, { 1000000, " ms" }, { 1000000000, " s" } };
    /* What would be shown as 1000 of one is 1.00 of the next. */
    unsigned unit = ns < 999500 ? 0 : ns < 999500000 ? 1 : 2;
    uint64_t unit_ns = units[unit].ns, hundredths = rounded(ns, unit_ns, 100),
             tenths = rounded(ns, unit_ns, 10);
    struct duration_text out;
    struct buf buf = buf_over(out.text, sizeof(out.text) - 1);
    if (hundredths < 1000) {
        buf_add_u64(&buf, hundredths / 100);
        buf_add_char(&buf, '.');
        buf_add_char(&buf, (char)('0' + hundredths / 10 % 10));
        buf_add_char(&buf, (char)('0' + hundredths % 10));
    } else if (tenths < 1000) {
        buf_add_u64(&buf, tenths / 10);
        buf_add_char(&buf, '.');
        buf_add_char(&buf, (char)('0' + tenths % 10));
    } else {
        buf_add_u64(&buf, rounded(ns, unit_ns, 1));
    }
    buf_add(&buf, span_text(units[unit].name));
    out.text[buf.len] = '\0';
    return out;
}
