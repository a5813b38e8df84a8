/* SPDX-License-Identifier: MIT
 *
 * Targets: a resolved path cannot leave the root, and is the same after it is encoded and
 * resolved again.
 */
#include "base/buf.h"
#include "base/check.h"
#include "http/request.h"
#include "http/target.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool bad_segment(struct span segment, bool last)
{
    return (segment.len == 0 && !last) || span_equal(segment, SPAN(".")) ||
           span_equal(segment, SPAN(".."));
}

static void check_path(struct span path)
{
    CHECK(path.len > 0 && path.at[0] == '/');
    CHECK(!memchr(path.at, '\0', path.len));
    struct span rest = span_skip(path, 1);
    for (;;) {
        const char *slash = rest.len > 0 ? memchr(rest.at, '/', rest.len) : NULL;
        size_t len = slash ? (size_t)(slash - rest.at) : rest.len;
        CHECK(!bad_segment(span_first(rest, len), !slash));
        if (!slash)
            return;
        rest = span_skip(rest, len + 1);
    }
}

/* Resolves a target as a GET does. */
static int resolve(struct span target, struct http_target *ret_target, char *storage, char *head)
{
    struct buf text = buf_over(head, HTTP_HEAD_MAX);
    buf_add(&text, SPAN("GET "));
    buf_add(&text, target);
    buf_add(&text, SPAN(" HTTP/1.1\r\nHost: a\r\n\r\n"));
    struct http_request request = { 0 };
    enum http_status status;
    if (text.overflow || http_request_parse(&request, buf_span(&text), &status) != HTTP_PARSED)
        return HTTP_BAD_REQUEST;
    return http_target_resolve(ret_target, &request, text.at, storage, HTTP_TARGET_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char head[HTTP_HEAD_MAX], storage[HTTP_TARGET_MAX];
    static char again_head[HTTP_HEAD_MAX], again_storage[HTTP_TARGET_MAX];
    static char location[HTTP_TARGET_MAX];
    struct http_target target;
    int status = resolve(span_of((const char *)data, size), &target, storage, head);
    CHECK(status == 0 || status == HTTP_BAD_REQUEST || status == HTTP_NOT_FOUND);
    if (status != 0)
        return 0;
    check_path(target.path);
    struct buf encoded = buf_over(location, sizeof(location));
    http_target_encode_path(&encoded, target.path);
    if (encoded.overflow)
        return 0;
    struct http_target again;
    CHECK(resolve(buf_span(&encoded), &again, again_storage, again_head) == 0);
    CHECK(span_equal(again.path, target.path));
    CHECK(!again.has_query);
    return 0;
}
