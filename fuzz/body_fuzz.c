/* SPDX-License-Identifier: MIT
 *
 * Chunked bodies: any split of the bytes ends at the same byte with the same result, and never
 * above the limit of a body.
 */
#include "base/check.h"
#include "base/hash.h"
#include "http/body.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    enum http_body_step step;
    enum http_status status;
    size_t consumed;
    uint64_t total;
};

static struct http_body begin(void)
{
    static const struct span head = {
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 56
    };
    struct http_request request = { 0 };
    enum http_status status;
    struct http_body body;
    CHECK(http_request_parse(&request, head, &status) == HTTP_PARSED);
    CHECK(http_body_begin(&body, &request, head.at) == 0);
    CHECK(body.kind == HTTP_BODY_CHUNKED);
    return body;
}

static struct outcome discard(struct span bytes, uint64_t random)
{
    struct http_body body = begin();
    struct outcome o = { .step = HTTP_BODY_MORE };
    while (o.step == HTTP_BODY_MORE && o.consumed < bytes.len) {
        size_t left = bytes.len - o.consumed;
        size_t len = left;
        if (random != 0) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            len = 1 + (size_t)(random >> 33) % (left < 9 ? left : 9);
        }
        char *copy = malloc(len);
        CHECK(copy);
        memcpy(copy, bytes.at + o.consumed, len);
        size_t consumed = len;
        o.step = http_body_discard(&body, span_of(copy, len), &consumed, &o.status);
        free(copy);
        CHECK(consumed <= len);
        o.consumed += o.step == HTTP_BODY_MORE ? len : consumed;
    }
    o.total = body.total;
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of((const char *)data, size);
    struct outcome whole = discard(bytes, 0);
    struct outcome split = discard(bytes, hash_bytes(bytes, 1) | 1);
    CHECK(whole.step == split.step);
    CHECK(whole.total <= HTTP_BODY_MAX);
    if (whole.step == HTTP_BODY_DONE)
        CHECK(whole.consumed == split.consumed && whole.total == split.total);
    if (whole.step == HTTP_BODY_FAILED)
        CHECK(whole.status == split.status && whole.status >= 400);
    return 0;
}
