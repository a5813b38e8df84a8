/* SPDX-License-Identifier: MIT */
#include "http2/repeat.h"

#include "base/scan.h"
#include "http2/huffman.h"

/* Finds the value of :path in a block that differs from the one before in this value at most.
 * False: the block may differ in more, or the form of the field is a rare one. */
static bool find_path(const struct http2_request *request, struct span block, struct span *ret_path)
{
    enum {
        /* RFC 7541 sections 6.2.2 and 6.2.3: a literal that is not added to the table, with the
         * name of index 4. */
        LITERAL = 0x04,
        NEVER_INDEXED = 0x10,
        /* RFC 7541 section 5.2 */
        HUFFMAN = 0x80,
        LENGTH = 0x7f,
        BEFORE_VALUE = 2
    };
    const struct span before = request->block;
    const size_t at = request->path_at + BEFORE_VALUE, behind = before.len - request->path_end;

    if (request->path_end == 0 || block.len < at + behind ||
        (before.at[at - 2] & ~NEVER_INDEXED) != LITERAL || memcmp(block.at, before.at, at - 1) != 0)
        return false;
    const unsigned first = (unsigned char)block.at[at - 1];
    const size_t len = first & LENGTH;
    if (len == LENGTH || block.len != at + len + behind ||
        memcmp(block.at + at + len, before.at + request->path_end, behind) != 0)
        return false;
    *ret_path = span_of(block.at + at, len);
    if (!(first & HUFFMAN))
        return true;
    char *storage = request->reader.name_storage;
    const long text_len = http2_huffman_decode(*ret_path, storage, HTTP2_HPACK_TEXT_MAX);
    *ret_path = span_of(storage, (size_t)text_len);
    return text_len >= 0;
}

/* Puts a path into the text. False: it is not well formed, or too long. */
static bool replace_path(struct http2_request *request, struct span path)
{
    char *at = (char *)(uintptr_t)request->text.at + request->method_len + 1;
    const size_t before = request->path_len;
    const size_t text_len = request->text.len - before + path.len;

    if (path.len == 0 || path.at[0] != '/' || scan_target_end(path.at, path.len) != path.len ||
        path.len > before + request->bytes_left || text_len > HTTP_HEAD_MAX)
        return false;
    if (path.len != before) {
        memmove(at + path.len, at + before, request->text.len - request->method_len - 1 - before);
        request->bytes_left += (uint32_t)(before - path.len);
        request->path_len = (uint32_t)path.len;
        request->text.len = text_len;
        if (request->priority.len > 0)
            request->priority.at = request->priority.at + path.len - before;
    }
    memcpy(at, path.at, path.len);
    return true;
}

static bool read_again(struct http2_request *request, struct span block)
{
    static const char digits[] = "1.1";
    struct span path;

    if (request->reader.changes || request->trailers)
        return false;
    if (!span_equal(block, request->block)) {
        if (!find_path(request, block, &path) || !replace_path(request, path))
            return false;
        request->path_end = (uint32_t)(block.len - (request->block.len - request->path_end));
    }
    request->block = block;
    const size_t version = request->method_len + 1 + request->path_len + sizeof(" HTTP/") - 1;
    memcpy((char *)(uintptr_t)request->text.at + version, digits, sizeof(digits) - 1);
    return true;
}

bool http2_repeat_read(struct http2_repeat *last, struct span block)
{
    if (!last->usable)
        return false;
    last->usable = read_again(&last->decoded, block);
    if (last->usable && last->decoded.text.len != last->parsed.head_len)
        http_request_resize(&last->parsed, last->decoded.text.len);
    return last->usable;
}
