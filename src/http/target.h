/* SPDX-License-Identifier: MIT
 *
 * The request target (RFC 9112 section 3.2) and the Host field: the host and the path of a
 * request. A path is percent-decoded once, and then its dot segments are removed (RFC 3986
 * section 5.2.4). A path that climbs above the root is an error.
 */
#pragma once

#include "http/request.h"

enum http_target_form {
    HTTP_TARGET_ORIGIN,   /* /path?query */
    HTTP_TARGET_ABSOLUTE, /* http://host/path?query */
    HTTP_TARGET_ASTERISK, /* *  (OPTIONS only) */
};

struct http_target {
    uint8_t form;      /* enum http_target_form */
    uint8_t fault;     /* enum http_fault: the cause of a 404 or 400 */
    bool normal;       /* `path` is the target's own bytes, unchanged */
    struct span host;  /* in any case, without port, with brackets; empty only in HTTP/1.0 */
    struct span path;  /* see http_target_resolve */
    struct span query; /* as it came, without '?'; empty: none */
    bool has_query;    /* there is a '?', even with nothing behind it */
};

/* Resolves target and Host of a parsed request. `path` is then decoded and normalised. It begins
 * with '/'. It has no NUL and no empty, `.` or `..` segment inside, and keeps a slash at its end.
 * It is "*" for the asterisk form.
 *
 * `storage`, at least HTTP_TARGET_MAX bytes, holds the path when decoding or normalising changes
 * it. Otherwise the path borrows the target's bytes. An absolute target's host takes precedence
 * over Host (RFC 9112 section 3.2.2). Repeated slashes become one.
 *
 * Returns 0, 404 or 400. 404: the path has a `%2F`, an encoded byte of a name that no file can
 * have. The target is set too, but its path means nothing. 400: only `fault` is set. These are a
 * 400:
 *
 * - no Host in HTTP/1.1, more than one, or an empty or malformed Host
 * - a target form that the method does not allow; the authority form of CONNECT is never valid here
 * - a scheme other than http or https, or a fragment
 * - a bad escape, or an encoded NUL or other control byte
 * - a path that climbs above the root
 *
 * A request that is both a 400 and a 404 is a 400. */
int http_target_resolve(struct http_target *ret_target, const struct http_request *request,
                        const char *head, char *storage, size_t storage_size);

/* Percent-encodes a decoded path for a Location field or a link: everything but unreserved
 * characters, sub-delims, ':', '@' and '/' (RFC 3986 section 3.3). The result never begins with
 * "//". Appends to `out`; see buf.h for overflow. */
struct buf;
void http_target_encode_path(struct buf *out, struct span path);
