/* SPDX-License-Identifier: MIT */
#include "load/value.h"

#include "base/duration.h"
#include "base/num.h"

bool load_value_decimal(struct span text, double *ret_value)
{
    enum { DIGITS_MAX = 18 };
    double value = 0, unit = 1;
    size_t digits = 0;
    bool point = false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '.' && !point) {
            point = true;
            continue;
        }
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9 || ++digits > DIGITS_MAX)
            return false;
        value = value * 10 + digit;
        unit *= point ? 10 : 1;
    }
    *ret_value = value / unit;
    return digits > 0;
}

bool load_value_duration(struct span text, uint64_t *ret_ns)
{
    static const uint64_t longest_ns = 1000 * 3600 * DURATION_SECOND;
    *ret_ns = 0;
    return duration_parse(text, ret_ns) && *ret_ns <= longest_ns;
}

/* Splits at the first `..`. */
static bool split_range(struct span text, struct span *ret_low, struct span *ret_high)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.at[i] != '.' || text.at[i + 1] != '.')
            continue;
        *ret_low = span_first(text, i);
        *ret_high = span_skip(text, i + 2);
        return true;
    }
    return false;
}

bool load_value_think(struct span text, struct load_think *ret_think)
{
    struct span low, high;
    *ret_think = (struct load_think){ .kind = LOAD_THINK_CONSTANT };
    if (span_starts(text, SPAN("uniform:"))) {
        ret_think->kind = LOAD_THINK_UNIFORM;
        return split_range(span_skip(text, 8), &low, &high) &&
               load_value_duration(low, &ret_think->low_ns) &&
               load_value_duration(high, &ret_think->high_ns) &&
               ret_think->low_ns <= ret_think->high_ns;
    }
    if (span_starts(text, SPAN("exp:"))) {
        ret_think->kind = LOAD_THINK_EXPONENTIAL;
        text = span_skip(text, 4);
    }
    bool good = load_value_duration(text, &ret_think->low_ns);
    ret_think->high_ns = ret_think->low_ns;
    return good;
}

bool load_value_next(struct span *list, struct span *ret_element)
{
    if (!list->at)
        return false;
    const char *comma = list->len > 0 ? memchr(list->at, ',', list->len) : NULL;
    size_t len = comma ? (size_t)(comma - list->at) : list->len;
    *ret_element = span_first(*list, len);
    *list = comma ? span_skip(*list, len + 1) : (struct span){ NULL, 0 };
    return true;
}

bool load_value_range(struct span text, bool (*take)(void *context, uint64_t value), void *context)
{
    struct span low, high;
    uint64_t from, to, by = 1;
    if (!split_range(text, &low, &high))
        return num_parse_u64(text, &from) && take(context, from);
    const char *colon = high.len > 0 ? memchr(high.at, ':', high.len) : NULL;
    if (colon) {
        size_t len = (size_t)(colon - high.at);
        if (!num_parse_u64(span_skip(high, len + 1), &by) || by == 0)
            return false;
        high = span_first(high, len);
    }
    if (!num_parse_u64(low, &from) || !num_parse_u64(high, &to) || from > to)
        return false;
    for (uint64_t value = from;; value += by) {
        if (!take(context, value))
            return false;
        if (to - value < by)
            return true;
    }
}
