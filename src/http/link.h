/* SPDX-License-Identifier: MIT
 *
 * Values of Link fields (RFC 8288 section 3): `<target>; rel=relation; ...`, separated by commas.
 * They say what a browser can fetch, or which connections it can open, before it has the page.
 */
#pragma once

#include "base/span.h"

/* Takes the next link from the front of `field`, trimmed. Empty ones are skipped. Commas within
 * `<...>` and within quoted strings separate nothing. False at the end of the field. */
bool http_link_next(struct span *field, struct span *ret_link);

/* Whether a browser uses the link when it arrives in an early hint (RFC 8297): one of its relations
 * is preload, modulepreload or preconnect. False for a malformed link. */
bool http_link_is_hint(struct span link);
