/* SPDX-License-Identifier: MIT */
#include "http/head.h"

#include "http/date.h"

void http_head_add_status(struct buf *head, enum http_status status)
{
    buf_add(head, http_status_line(status));
}

void http_head_add_field(struct buf *head, struct span name, struct span value)
{
    buf_add(head, name);
    buf_add(head, SPAN(": "));
    buf_add(head, value);
    buf_add(head, SPAN("\r\n"));
}

void http_head_add_date(struct buf *head, struct span name, int64_t seconds)
{
    char date[HTTP_DATE_LEN];
    http_date_format(date, seconds);
    http_head_add_field(head, name, span_of(date, sizeof(date)));
}

void http_head_add_length(struct buf *head, uint64_t len)
{
    buf_add(head, SPAN("Content-Length: "));
    buf_add_u64(head, len);
    buf_add(head, SPAN("\r\n"));
}

void http_head_add_validators(struct buf *head, struct http_validators validators)
{
    if (validators.etag.len > 0)
        http_head_add_field(head, SPAN("ETag"), validators.etag);
    if (validators.modified_s >= 0)
        http_head_add_date(head, SPAN("Last-Modified"), validators.modified_s);
}

void http_head_add_content_range(struct buf *head, struct http_range range, uint64_t size)
{
    buf_add(head, SPAN("Content-Range: bytes "));
    if (range.len > 0) {
        buf_add_u64(head, range.first);
        buf_add_char(head, '-');
        buf_add_u64(head, range.first + range.len - 1);
    } else {
        buf_add_char(head, '*');
    }
    buf_add_char(head, '/');
    buf_add_u64(head, size);
    buf_add(head, SPAN("\r\n"));
}

void http_head_end(struct buf *head, struct span last_lines)
{
    buf_add(head, SPAN("X-Content-Type-Options: nosniff\r\n"));
    buf_add(head, last_lines);
    buf_add(head, SPAN("\r\n"));
}
