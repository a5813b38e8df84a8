/* SPDX-License-Identifier: MIT
 *
 * Base64 (RFC 4648 section 4), with padding and without line breaks.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* Bytes that so many take as text, and at most so many that a text can hold. */
#define LOAD_BASE64_LEN(bytes)  (((bytes) + 2) / 3 * 4)
#define LOAD_BASE64_ROOM(chars) ((chars) / 4 * 3)

/* Writes LOAD_BASE64_LEN(len) characters, no NUL. */
void load_base64_encode(const uint8_t *bytes, size_t len, char *out);

/* Writes to `out`, which has LOAD_BASE64_ROOM(text.len) bytes; false: it is no base64. */
bool load_base64_decode(struct span text, uint8_t *out, size_t *ret_len);
