/* SPDX-License-Identifier: MIT
 *
 * The field Traceparent, by which a request is found in the logs of all servers that it passed (W3C
 * Trace Context, section 3.2). It is checked here and goes into the access log. Nothing else
 * depends on it.
 */
#pragma once

#include "base/span.h"

/* Bytes of a value of version 00: VERSION-TRACE-PARENT-FLAGS. */
enum { HTTP_TRACEPARENT_BYTES = 55 };

/* The part of a value that the standard defines, HTTP_TRACEPARENT_BYTES of it. A later version may
 * have more behind a hyphen. Empty: the value is not well-formed. */
struct span http_traceparent_read(struct span value);
