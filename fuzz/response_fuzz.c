/* SPDX-License-Identifier: MIT
 *
 * A stream of responses, as a client reads it: any split of the bytes gives the same answers,
 * and never more body bytes than input bytes.
 */
#include "base/check.h"
#include "base/hash.h"
#include "http/response.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reader {
    struct http_response response;
    bool in_body, failed;
    unsigned answers;
    uint64_t statuses, body_bytes;
};

static size_t read_head(struct reader *reader, struct span bytes)
{
    struct http_response *response = &reader->response;
    enum http_parse result = http_response_parse(response, bytes, false);
    reader->failed = result == HTTP_PARSE_FAILED;
    if (result != HTTP_PARSED)
        return 0;
    CHECK(response->head_len > 0 && response->head_len <= bytes.len);
    CHECK(response->status >= 100 && response->status <= 599);
    reader->statuses = reader->statuses * 1000003 + response->status;
    reader->in_body = response->body.kind != HTTP_BODY_NONE;
    return response->head_len;
}

static size_t read_body(struct reader *reader, struct span bytes, bool *ret_done)
{
    size_t consumed = 0;
    struct span data = { "", 0 };
    enum http_status status;
    enum http_body_step step =
        http_body_read(&reader->response.body, bytes, &consumed, &data, &status);
    reader->failed = step == HTTP_BODY_FAILED;
    if (reader->failed)
        return 0;
    CHECK(consumed <= bytes.len && data.len <= consumed);
    CHECK(data.len == 0 || (data.at >= bytes.at && data.at + data.len <= bytes.at + consumed));
    CHECK(consumed > 0);
    reader->body_bytes += data.len;
    *ret_done = step == HTTP_BODY_DONE;
    return consumed;
}

/* Reads one head, or continues a body. Returns how many bytes are consumed. */
static size_t step(struct reader *reader, struct span bytes)
{
    bool done = false;
    size_t used = reader->in_body ? read_body(reader, bytes, &done) : read_head(reader, bytes);
    if (done || (used > 0 && !reader->in_body)) {
        reader->answers++;
        reader->in_body = false;
        reader->response = (struct http_response){ 0 };
    }
    return used;
}

static struct reader read_all(struct span bytes, uint64_t random)
{
    struct reader reader = { 0 };
    size_t from = 0, to = random ? 0 : bytes.len;
    while (!reader.failed && from < bytes.len) {
        char *copy = malloc(to - from + 1);
        CHECK(copy);
        memcpy(copy, bytes.at + from, to - from);
        size_t used = to > from ? step(&reader, span_of(copy, to - from)) : 0;
        free(copy);
        from += used;
        if (used == 0 && to == bytes.len)
            break;
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (used == 0)
            to += 1 + (size_t)(random >> 33) % (bytes.len / 8 + 1);
        to = to < bytes.len ? to : bytes.len;
    }
    return reader;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of((const char *)data, size);
    struct reader whole = read_all(bytes, 0);
    struct reader split = read_all(bytes, hash_bytes(bytes, 1) | 1);
    CHECK(whole.failed == split.failed && whole.answers == split.answers);
    CHECK(whole.statuses == split.statuses && whole.body_bytes == split.body_bytes);
    CHECK(whole.body_bytes <= size);
    return 0;
}
