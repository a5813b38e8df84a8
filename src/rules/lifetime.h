/* SPDX-License-Identifier: MIT
 *
 * Which field lines give an answer a lifetime in a cache. An error with such a line would hide a
 * file that appears, or an outage that ends, from every client that stored the error.
 */
#pragma once

#include "base/span.h"

/* `line` is `Name: value`, without CRLF. */
bool rules_lifetime_given(struct span line);
