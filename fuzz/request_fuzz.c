/* SPDX-License-Identifier: MIT
 *
 * Heads: any split of the bytes gives the same result, and every piece lies inside the head. A
 * parsed head is then given to framing, target and conditions.
 */
#include "base/check.h"
#include "base/hash.h"
#include "http/body.h"
#include "http/precondition.h"
#include "http/request.h"
#include "http/target.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_slice(struct http_slice slice, size_t head_len)
{
    CHECK((size_t)slice.at + slice.len <= head_len);
}

static void check_pieces(const struct http_request *request, size_t size)
{
    CHECK(request->head_len > 0 && request->head_len <= size);
    CHECK(request->head_len <= HTTP_HEAD_MAX);
    check_slice(request->method_text, request->head_len);
    check_slice(request->target, request->head_len);
    check_slice(request->line, request->head_len);
    for (unsigned field = 0; field < HTTP_FIELD_COUNT; field++)
        check_slice(request->field[field], request->head_len);
    CHECK((request->repeated & ~request->present) == 0);
}

/* Parses the same bytes in portions, at another address each time. */
static enum http_parse parse_in_portions(struct http_request *request, struct span bytes,
                                         enum http_status *ret_status)
{
    uint64_t random = hash_bytes(bytes, 1);
    size_t len = 0;
    for (;;) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        len += 1 + (size_t)(random >> 33) % (1 + bytes.len / 8);
        if (len > bytes.len)
            len = bytes.len;
        char *copy = malloc(len ? len : 1);
        CHECK(copy);
        if (len > 0)
            memcpy(copy, bytes.at, len);
        enum http_parse result = http_request_parse(request, span_of(copy, len), ret_status);
        free(copy);
        if (result != HTTP_PARSE_MORE || len == bytes.len)
            return result;
    }
}

static void use_parsed(const struct http_request *request, const char *head)
{
    struct http_body body;
    (void)http_body_begin(&body, request, head);
    struct http_target target;
    char storage[HTTP_TARGET_MAX];
    (void)http_target_resolve(&target, request, head, storage, sizeof(storage));
    (void)http_request_persists(request, head);
    struct http_validators current = { SPAN("\"a\""), 784111777 };
    (void)http_precondition_evaluate(request, head, current, 1795248000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = span_of((const char *)data, size);
    struct http_request whole = { 0 };
    enum http_status status = HTTP_OK;
    enum http_parse result = http_request_parse(&whole, bytes, &status);

    struct http_request split = { 0 };
    enum http_status split_status = HTTP_OK;
    CHECK(parse_in_portions(&split, bytes, &split_status) == result);
    if (result == HTTP_PARSE_FAILED) {
        CHECK(status >= 400 && status == split_status);
        CHECK((size_t)whole.line.at + whole.line.len <= size);
    }
    if (result != HTTP_PARSED)
        return 0;
    check_pieces(&whole, size);
    CHECK(split.head_len == whole.head_len && split.method == whole.method);
    CHECK(split.present == whole.present && split.repeated == whole.repeated);
    CHECK(memcmp(split.field, whole.field, sizeof(whole.field)) == 0);
    use_parsed(&whole, bytes.at);
    return 0;
}
