/* SPDX-License-Identifier: MIT
 *
 * The built-in error page of each status: small, readable in light and dark, without any further
 * request. A site's own pages come from site_query_error_page.
 *
 * Private to session/.
 */
#pragma once

#include "base/buf.h"
#include "http/status.h"

/* The bytes of the page of a status, at most SESSION_ERRORPAGE_MAX. */
enum { SESSION_ERRORPAGE_MAX = 2048 };
size_t session_errorpage_size(enum http_status status);

/* Adds the page. `id` is that of the request, by which an administrator finds its line in the
 * access log. */
void session_errorpage_add(struct buf *out, enum http_status status, uint64_t id);
