/* SPDX-License-Identifier: MIT
 *
 * Which field lines give an answer a lifetime in a cache. An error with such a line would hide a
 * file that appears, or an outage that ends, from every client that stored the error. And which
 * lines open shared caches for an answer that they must not keep otherwise.
 */
#pragma once

#include "base/span.h"

/* `line` is `Name: value`, without CRLF. */
bool rules_lifetime_given(struct span line);

/* Whether the line lets a shared cache keep the answer to a request with Authorization (RFC 9111
 * section 3.5), or controls single shared caches. `line` may have its CRLF. */
bool rules_lifetime_is_shared(struct span line);
