/* SPDX-License-Identifier: MIT
 *
 * From target and Host to a host and a path. The usual path needs no decoding and no normalising,
 * and is lent in place. A path with a special byte is rewritten. It is decoded exactly once,
 * segment by segment. So an encoded dot is a dot, and an encoded slash is never a separator.
 *
 * It does not look up the path or the site.
 */
#include "http/target.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/num.h"
#include "base/scan.h"

enum { PORT_MAX = 65535, ADDRESS_V6_LEN_MAX = 45 };

/* Letters, digits and `-._~`: the bytes of host names. The grammar of RFC 3986 section 3.2.2
 * also has percent-encoding and sub-delims, which no host's name uses. */
static const unsigned char host_bytes[256] = {
    ['-'] = 1,         ['.'] = 1,         ['_'] = 1,         ['~'] = 1,
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

/* The pchar of RFC 3986 section 3.3 without percent-encoding, and '/'. */
static const unsigned char path_bytes[256] = {
    ['!'] = 1,         ['$'] = 1,         ['&'] = 1,         ['\''] = 1, ['('] = 1, [')'] = 1,
    ['*'] = 1,         ['+'] = 1,         [','] = 1,         ['-'] = 1,  ['.'] = 1, ['/'] = 1,
    [':'] = 1,         [';'] = 1,         ['='] = 1,         ['@'] = 1,  ['_'] = 1, ['~'] = 1,
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

/* The length of `[` hexadecimal digits, at least two colons, and dots `]` at the front of
 * `authority`, or 0. */
static size_t address_v6_len(struct span authority)
{
    size_t colons = 0;
    struct span window = span_first(authority, ADDRESS_V6_LEN_MAX + 2);

    for (size_t i = 1; i < window.len; i++) {
        char c = window.at[i];
        if (c == ']')
            return colons >= 2 ? i + 1 : 0;
        if (c != ':' && c != '.' && num_hex_digit(c) < 0)
            return 0;
        colons += c == ':';
    }
    return 0;
}

/* Splits `host [":" port]`; false when it is not that form. The host is not empty. */
static bool authority_host(struct span authority, struct span *ret_host)
{
    size_t len = 0;

    if (authority.len > 0 && authority.at[0] == '[')
        len = address_v6_len(authority);
    else
        while (len < authority.len && host_bytes[(unsigned char)authority.at[len]])
            len++;
    if (len == 0)
        return false;
    if (len < authority.len) {
        struct span port = span_skip(authority, len + 1);
        uint64_t number = 0;
        if (authority.at[len] != ':')
            return false;
        /* The grammar allows a colon without digits. */
        if (port.len > 0 && (!num_parse_u64(port, &number) || number > PORT_MAX))
            return false;
    }
    *ret_host = span_first(authority, len);
    return true;
}

/* The host in the Host field (RFC 9112 section 3.2). */
static enum http_fault host_field(const struct http_request *request, const char *head,
                                  struct span *ret_host)
{
    if (!http_request_has(request, HTTP_FIELD_HOST)) {
        *ret_host = span_of(head, 0);
        return request->minor == 0 ? HTTP_FAULT_NONE : HTTP_FAULT_HOST_MISSING;
    }
    if (http_request_repeats(request, HTTP_FIELD_HOST))
        return HTTP_FAULT_HOST_REPEATED;
    bool good = authority_host(http_request_field(request, head, HTTP_FIELD_HOST), ret_host);
    return good ? HTTP_FAULT_NONE : HTTP_FAULT_HOST_FORM;
}

/* Removes scheme and authority from the front of an absolute target. The rest is empty or begins
 * with '/', '?' or '#'. */
static enum http_fault take_authority(struct span *target, struct span *ret_host)
{
    static const struct span schemes[] = { SPAN("http://"), SPAN("https://") };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (!span_equal_nocase(span_first(*target, schemes[i].len), schemes[i]))
            continue;
        struct span rest = span_skip(*target, schemes[i].len);
        size_t len = 0;
        while (len < rest.len && rest.at[len] != '/' && rest.at[len] != '?' && rest.at[len] != '#')
            len++;
        *target = span_skip(rest, len);
        bool good = authority_host(span_first(rest, len), ret_host);
        return good ? HTTP_FAULT_NONE : HTTP_FAULT_TARGET_HOST;
    }
    return HTTP_FAULT_TARGET_FORM;
}

/* Decodes one segment to `out`, which has space for it. A fault that is a 400 takes precedence
 * over an encoded slash. */
static enum http_fault decode_segment(struct span segment, char *out, size_t *ret_len)
{
    size_t len = 0;
    enum http_fault fault = HTTP_FAULT_NONE;

    for (size_t i = 0; i < segment.len; i++) {
        char c = segment.at[i];
        if (c == '%') {
            if (segment.len - i < 3)
                return HTTP_FAULT_ESCAPE;
            int high = num_hex_digit(segment.at[i + 1]);
            int low = num_hex_digit(segment.at[i + 2]);
            if (high < 0 || low < 0)
                return HTTP_FAULT_ESCAPE;
            int byte = high << 4 | low;
            if (byte < 0x20 || byte == 0x7f)
                return HTTP_FAULT_ENCODED_CONTROL;
            if (byte == '/') {
                fault = HTTP_FAULT_ENCODED_SLASH;
                byte = 0; /* no code uses the path, but its segments must not change */
            }
            c = (char)byte;
            i += 2;
        }
        out[len++] = c;
    }
    *ret_len = len;
    return fault;
}

/* Decodes `raw`, which begins with '/', to `out` without empty and dot segments. A fault that is
 * a 400 takes precedence over one that is a 404. */
static enum http_fault normalise_path(struct span raw, char *out, size_t *ret_len)
{
    size_t len = 1;
    enum http_fault fault = HTTP_FAULT_NONE;

    out[0] = '/';
    for (size_t pos = 1; pos < raw.len;) { /* out[len - 1] is '/' here */
        struct span rest = span_skip(raw, pos);
        const char *slash = memchr(rest.at, '/', rest.len);
        struct span segment = span_first(rest, slash ? (size_t)(slash - rest.at) : rest.len);
        size_t decoded = 0;
        enum http_fault failed = decode_segment(segment, out + len, &decoded);
        if (failed != HTTP_FAULT_NONE && failed != HTTP_FAULT_ENCODED_SLASH)
            return failed;
        if (failed != HTTP_FAULT_NONE)
            fault = failed;

        struct span name = span_of(out + len, decoded);
        pos += segment.len + 1;
        if (name.len == 0 || span_equal(name, SPAN(".")))
            continue;
        if (span_equal(name, SPAN(".."))) {
            if (len == 1)
                return HTTP_FAULT_ABOVE_ROOT;
            do
                len--;
            while (out[len - 1] != '/');
            continue;
        }
        len += name.len;
        if (slash)
            out[len++] = '/';
    }
    *ret_len = len;
    return fault;
}

/* Splits `target`, which is empty or begins with '/' or '?', into path and query. */
static enum http_fault resolve_path(struct http_target *out, struct span target, char *storage)
{
    size_t special = scan_path_special(target.at, target.len);
    size_t path_len = special;

    while (path_len < target.len && target.at[path_len] != '?' && target.at[path_len] != '#')
        path_len++;
    struct span rest = span_skip(target, path_len);
    if (rest.len > 0) {
        if (memchr(rest.at, '#', rest.len))
            return HTTP_FAULT_FRAGMENT;
        out->has_query = true;
        out->query = span_skip(rest, 1);
    }

    out->path = span_first(target, path_len);
    out->normal = path_len == special && path_len > 0;
    if (out->normal)
        return HTTP_FAULT_NONE;
    if (path_len == 0) { /* http://host and http://host?query */
        out->path = SPAN("/");
        return HTTP_FAULT_NONE;
    }
    enum http_fault fault = normalise_path(out->path, storage, &path_len);
    out->path = span_of(storage, path_len);
    return fault;
}

static enum http_fault resolve_target(struct http_target *out, const struct http_request *request,
                                      const char *head, char *storage)
{
    struct span target = span_of(head + request->target.at, request->target.len);
    enum http_fault fault = host_field(request, head, &out->host);

    if (fault != HTTP_FAULT_NONE)
        return fault;
    if (request->method == HTTP_OPTIONS && span_equal(target, SPAN("*"))) {
        out->form = HTTP_TARGET_ASTERISK;
        out->path = target;
        return HTTP_FAULT_NONE;
    }
    if (target.at[0] != '/') {
        out->form = HTTP_TARGET_ABSOLUTE;
        fault = take_authority(&target, &out->host);
    }
    return fault != HTTP_FAULT_NONE ? fault : resolve_path(out, target, storage);
}

int http_target_resolve(struct http_target *ret_target, const struct http_request *request,
                        const char *head, char *storage, size_t storage_size)
{
    struct http_target out = { .form = HTTP_TARGET_ORIGIN };

    CHECK(storage_size >= HTTP_TARGET_MAX);
    enum http_fault fault = resolve_target(&out, request, head, storage);
    int status = http_fault_status(fault);
    if (status != HTTP_BAD_REQUEST)
        *ret_target = out;
    ret_target->fault = (uint8_t)fault;
    return status;
}

void http_target_encode_path(struct buf *out, struct span path)
{
    while (path.len > 1 && path.at[0] == '/' && path.at[1] == '/')
        path = span_skip(path, 1);

    while (path.len > 0) {
        size_t plain = 0;
        while (plain < path.len && path_bytes[(unsigned char)path.at[plain]])
            plain++;
        buf_add(out, span_first(path, plain));
        path = span_skip(path, plain);
        if (path.len == 0)
            break;
        unsigned char c = (unsigned char)path.at[0];
        char escape[] = { '%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15] };
        buf_add(out, span_of(escape, sizeof(escape)));
        path = span_skip(path, 1);
    }
}
