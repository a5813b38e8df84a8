/* SPDX-License-Identifier: MIT
 *
 * The field lines of an HTTP/1.1 head that the program itself wrote, as HTTP/2 may carry them.
 */
#pragma once

#include "base/span.h"

/* Takes the next line, `Name: value` and CRLF, from the front of `lines`. It skips fields that
 * belong to an HTTP/1.1 connection: Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding and
 * Upgrade (RFC 9113 section 8.2.2). The value is trimmed. False at the empty line or the end. */
bool http2_line_next(struct span *lines, struct span *ret_name, struct span *ret_value);
