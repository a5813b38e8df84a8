/* SPDX-License-Identifier: MIT */
#include "http/traceparent.h"

#include "base/check.h"

/* `0` stands for a hexadecimal digit in lower case. */
static const char form[] = "00-00000000000000000000000000000000-0000000000000000-00";
static_assert(sizeof(form) - 1 == HTTP_TRACEPARENT_BYTES, "the form has the length of a value");

enum { TRACE_AT = 3, TRACE_LEN = 32, PARENT_AT = 36, PARENT_LEN = 16 };

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool has_form(struct span value)
{
    for (size_t i = 0; i < HTTP_TRACEPARENT_BYTES; i++)
        if (form[i] == '0' ? !is_digit(value.at[i]) : value.at[i] != form[i])
            return false;
    return true;
}

/* An id of zeros is invalid. */
static bool is_zero(struct span value, size_t at, size_t len)
{
    return memcmp(value.at + at, form + TRACE_AT, len) == 0;
}

struct span http_traceparent_read(struct span value)
{
    const struct span none = { NULL, 0 };
    if (value.len < HTTP_TRACEPARENT_BYTES || !has_form(value))
        return none;
    const bool is_first = span_starts(value, SPAN("00"));
    const bool is_longer = value.len > HTTP_TRACEPARENT_BYTES;
    if (is_longer && (is_first || value.at[HTTP_TRACEPARENT_BYTES] != '-'))
        return none;
    if (span_starts(value, SPAN("ff")) || is_zero(value, TRACE_AT, TRACE_LEN) ||
        is_zero(value, PARENT_AT, PARENT_LEN))
        return none;
    return span_first(value, HTTP_TRACEPARENT_BYTES);
}
