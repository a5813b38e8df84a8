/* SPDX-License-Identifier: MIT
 *
 * Decodes UTF-8 (RFC 3629), strictly: no surrogates, no overlong forms, nothing above
 * U+10FFFF. The caller decides what replaces an invalid byte.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* Returns the length in bytes of the character that `text` begins with, 1 to 4, and writes its
 * code point. Returns 0, and writes nothing, when `text` is empty or begins with none. */
size_t utf8_decode(struct span text, uint32_t *ret_code);
