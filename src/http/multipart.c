/* SPDX-License-Identifier: MIT */
#include "http/multipart.h"

#include "base/check.h"
#include "base/num.h"
#include "http/head.h"

struct http_multipart http_multipart_begin(const struct http_ranges *ranges, struct span type,
                                           uint64_t size, uint64_t boundary)
{
    return (struct http_multipart){ .ranges = *ranges,
                                    .type = type,
                                    .size = size,
                                    .boundary = boundary,
                                    .left = ranges->count + 1 };
}

static void add_boundary(const struct http_multipart *body, struct buf *text)
{
    buf_add(text, SPAN("weir"));
    buf_add_hex(text, body->boundary, NUM_HEX_DIGITS);
}

void http_multipart_add_type(const struct http_multipart *body, struct buf *head)
{
    buf_add(head, SPAN("Content-Type: multipart/byteranges; boundary="));
    add_boundary(body, head);
    buf_add(head, SPAN("\r\n"));
}

bool http_multipart_next(struct http_multipart *body, struct buf *text,
                         struct http_range *ret_range)
{
    if (body->left == 0)
        return false;
    body->left--;
    unsigned part = body->ranges.count - body->left;
    bool closing = body->left == 0;
    buf_add(text, part == 0 ? SPAN("--") : SPAN("\r\n--"));
    add_boundary(body, text);
    buf_add(text, closing ? SPAN("--\r\n") : SPAN("\r\n"));
    *ret_range = (struct http_range){ 0 };
    if (closing)
        return true;
    *ret_range = body->ranges.range[part];
    http_head_add_field(text, SPAN("Content-Type"), body->type);
    http_head_add_content_range(text, *ret_range, body->size);
    buf_add(text, SPAN("\r\n"));
    return true;
}

uint64_t http_multipart_length(const struct http_multipart *body)
{
    struct http_multipart rest = *body;
    struct http_range range;
    uint64_t total = 0;
    rest.left = rest.ranges.count + 1;
    for (;;) {
        char scratch[HTTP_MULTIPART_FRAMING_MAX];
        struct buf text = buf_over(scratch, sizeof(scratch));
        if (!http_multipart_next(&rest, &text, &range))
            return total;
        CHECK(!text.overflow);
        total += text.len + range.len;
    }
}
