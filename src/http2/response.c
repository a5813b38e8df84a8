/* SPDX-License-Identifier: MIT */
#include "http2/response.h"

#include "base/check.h"
#include "base/num.h"
#include "http/date.h"
#include "http2/line.h"

/* RFC 7541 sections 5 and 6. */
enum {
    INDEXED = 0x80,
    INDEXED_BITS = 7,
    LITERAL_BITS = 4,
    STRING_BITS = 7,
    STATUS_FIRST_INDEX = 8,
    STATUS_DIGITS = 3,
};

void http2_response_add_status(struct buf *block, unsigned status)
{
    static const uint16_t indexed[] = { 200, 204, 206, 304, 400, 404, 500 };
    char digits[NUM_U64_DIGITS];

    for (unsigned i = 0; i < sizeof(indexed) / sizeof(indexed[0]); i++) {
        if (indexed[i] == status) {
            http2_hpack_add_integer(block, INDEXED, INDEXED_BITS, STATUS_FIRST_INDEX + i);
            return;
        }
    }
    http2_hpack_add_integer(block, 0, LITERAL_BITS, STATUS_FIRST_INDEX);
    http2_hpack_add_integer(block, 0, STRING_BITS, STATUS_DIGITS);
    buf_add(block, span_of(digits, num_format_u64(digits, status)));
}

void http2_response_add_date(struct buf *block, const char *date)
{
    unsigned index = http2_table_name_index(HTTP2_NAME_DATE);

    http2_hpack_add_integer(block, 0, LITERAL_BITS, index);
    http2_hpack_add_integer(block, 0, STRING_BITS, HTTP_DATE_LEN);
    buf_add(block, span_of(date, HTTP_DATE_LEN));
}

void http2_response_add_location(struct buf *block, struct span target)
{
    unsigned index = http2_table_name_index(HTTP2_NAME_LOCATION);

    http2_hpack_add_integer(block, 0, LITERAL_BITS, index);
    http2_hpack_add_integer(block, 0, STRING_BITS, target.len);
    buf_add(block, target);
}

void http2_response_add_lines(struct buf *block, struct span lines)
{
    struct span name, value;

    while (http2_line_next(&lines, &name, &value))
        http2_hpack_add_field(block, name, value);
}

void http2_response_add_head(struct buf *block, struct span head)
{
    enum { STATUS_AT = sizeof("HTTP/1.1 ") - 1 };
    const char *end = memchr(head.at, '\n', head.len);
    uint64_t status;

    CHECK(end && end - head.at >= STATUS_AT + STATUS_DIGITS &&
          num_parse_u64(span_of(head.at + STATUS_AT, STATUS_DIGITS), &status));
    http2_response_add_status(block, (unsigned)status);
    http2_response_add_lines(block, span_skip(head, (size_t)(end + 1 - head.at)));
}
