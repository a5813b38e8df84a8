/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/buf.h"

struct duration_text duration_format(uint64_t ns)
{
    /* A value that would be shown as 1000 of a unit is shown as 1.00 of the next. */
    const uint64_t unit_ns = ns < 999500           ? DURATION_US
                             : ns < 999500 * 1000u ? DURATION_MS
                                                   : DURATION_SECOND;
    struct duration_text out;
    struct buf buf = buf_over(out.text, sizeof(out.text) - 1);
    buf_add_figures(&buf, ns, unit_ns);
    buf_add(&buf, unit_ns == DURATION_US   ? SPAN(" us")
                  : unit_ns == DURATION_MS ? SPAN(" ms")
                                           : SPAN(" s"));
    out.text[buf.len] = '\0';
    return out;
}

static size_t count_digits(struct span text)
{
    size_t count = 0;
    while (count < text.len && text.at[count] >= '0' && text.at[count] <= '9')
        count++;
    return count;
}

static bool read_unit(struct span text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        { "us", DURATION_US },         { "ms", DURATION_MS },           { "s", DURATION_SECOND },
        { "m", 60 * DURATION_SECOND }, { "h", 3600 * DURATION_SECOND },
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (!span_equal_nocase(text, span_text(units[i].name)))
            continue;
        *ret_ns = units[i].ns;
        return true;
    }
    return false;
}

bool duration_parse(struct span text, uint64_t *ret_ns)
{
    const struct span whole = span_first(text, count_digits(text));
    struct span rest = span_skip(text, whole.len), part = SPAN("");
    if (span_starts(rest, SPAN("."))) {
        rest = span_skip(rest, 1);
        part = span_first(rest, count_digits(rest));
        rest = span_skip(rest, part.len);
    }
    uint64_t ns = 0, unit_ns = 1;
    bool zero = true;
    if (whole.len + part.len == 0)
        return false;
    if (!read_unit(rest, &unit_ns) && !span_equal(text, SPAN("0")))
        return false;
    for (size_t i = 0; i < whole.len; i++) {
        unsigned digit = (unsigned)(whole.at[i] - '0');
        zero = zero && digit == 0;
        if (__builtin_mul_overflow(ns, 10u, &ns) ||
            __builtin_add_overflow(ns, digit * unit_ns, &ns))
            return false;
    }
    for (size_t i = 0; i < part.len; i++) {
        unsigned digit = (unsigned)(part.at[i] - '0');
        zero = zero && digit == 0;
        unit_ns /= 10; /* 0 where digits stand for less than 1 ns */
        if (__builtin_add_overflow(ns, digit * unit_ns, &ns))
            return false;
    }
    if (ns == 0 && !zero)
        return false;
    *ret_ns = ns;
    return true;
}
