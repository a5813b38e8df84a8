/* SPDX-License-Identifier: MIT */
#include "http2/line.h"

#include "base/check.h"

static bool is_of_connection(struct span name)
{
    static const char *const names[] = { "connection", "keep-alive", "proxy-connection",
                                         "transfer-encoding", "upgrade" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_equal_nocase(name, span_text(names[i])))
            return true;
    return false;
}

bool http2_line_next(struct span *lines, struct span *ret_name, struct span *ret_value)
{
    while (lines->len > 0 && lines->at[0] != '\r') {
        const char *end = memchr(lines->at, '\n', lines->len);
        CHECK(end && end > lines->at && end[-1] == '\r');
        struct span line = span_of(lines->at, (size_t)(end - 1 - lines->at));
        const char *colon = memchr(line.at, ':', line.len);
        CHECK(colon);
        *lines = span_skip(*lines, line.len + 2);
        *ret_name = span_of(line.at, (size_t)(colon - line.at));
        *ret_value = span_trim(span_skip(line, ret_name->len + 1));
        if (!is_of_connection(*ret_name))
            return true;
    }
    return false;
}
