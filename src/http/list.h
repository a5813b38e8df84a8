/* SPDX-License-Identifier: MIT
 *
 * Comma-separated lists in field values (RFC 9110 section 5.6.1).
 */
#pragma once

#include "base/span.h"

/* Takes the next element from the front of `list`, trimmed. Empty elements are skipped, and a
 * quoted string is kept whole. False at the end of the list. */
bool http_list_next(struct span *list, struct span *ret_element);

/* Whether a list has this token, in any case. */
bool http_list_has(struct span list, struct span token);
