/* SPDX-License-Identifier: MIT
 *
 * The request target (RFC 9112 section 3.2) and the Host field: which host is
 * asked, and for which path. A path is percent-decoded once, then its dot
 * segments are removed (RFC 3986 section 5.2.4); what would climb above the
 * root is an error, not a guess.
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
    uint8_t fault;     /* enum http_fault; the cause of a 404 or 400 */
    bool normal;       /* path is borrowed from the target as it came */
    struct span host;  /* lower case not assured; without port; brackets kept; empty only for an
                          HTTP/1.0 request that names none */
    struct span path;  /* decoded and normalised; begins with '/'; no NUL, no empty, `.` or `..`
                          segment inside; a trailing '/' is kept. "*" for the asterisk form */
    struct span query; /* as it came, without '?'; empty when none */
    bool has_query;    /* there was a '?', even with nothing behind it */
};

/* Resolves target and Host of a parsed request.
 *
 * `storage` (at least HTTP_TARGET_MAX bytes) takes the path when decoding or
 * normalising changes it; otherwise the path borrows the target's bytes.
 * An absolute target's host wins over Host (RFC 9112 section 3.2.2).
 * Duplicate slashes collapse to one. A `%2F` is an encoded byte of a segment
 * name that no file can have: the path is answered 404, told by returning 404.
 *
 * Returns 0, 404, or 400: no Host in HTTP/1.1, more than one, an empty or malformed
 * Host (userinfo, path, bad port, bad characters, unclosed bracket), a target
 * form that the method does not allow, a scheme other than http or https, a
 * fragment, a bad escape, an encoded NUL or other control byte, or a path that
 * climbs above the root. CONNECT's authority form is never valid here: 400.
 * What is wrong in two ways, 400 and 404, is a 400. With 404 the target is set
 * too, but its path means nothing; with 400 only its `fault` is. */
int http_target_resolve(struct http_target *ret_target, const struct http_request *request,
                        const char *head, char *storage, size_t storage_size);

/* Percent-encodes a decoded path for a Location field or a link: everything but
 * unreserved characters, sub-delims, ':', '@' and '/' (RFC 3986 section 3.3).
 * A leading "//" never comes out. Appends to `out` (see buf.h for overflow). */
struct buf;
void http_target_encode_path(struct buf *out, struct span path);
