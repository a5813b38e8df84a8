/* SPDX-License-Identifier: MIT
 *
 * Comma-separated lists in field values (RFC 9110 section 5.6.1).
 */
#pragma once

#include "base/span.h"

/* Gives the next element of `list`, trimmed; empty elements are skipped and a
 * quoted string is kept whole. `list` shrinks from the front; false at its end. */
bool http_list_next(struct span *list, struct span *ret_element);

/* Whether a list holds this token, without regard to case. */
bool http_list_has(struct span list, struct span token);
