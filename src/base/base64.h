/* SPDX-License-Identifier: MIT
 *
 * Base64 (RFC 4648 section 4), without line breaks.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* The characters that `bytes` bytes take, and the most bytes that `chars` characters hold. */
#define BASE64_CHARS(bytes) (((bytes) + 2) / 3 * 4)
#define BASE64_BYTES(chars) (((chars) + 3) / 4 * 3)

/* Writes BASE64_CHARS(len) characters with padding, no NUL. */
void base64_encode(const uint8_t *bytes, size_t len, char *out);

/* Decodes text with or without its padding. Returns false when it is not base64 or holds more
 * than `size` bytes; `out` is undefined then. */
bool base64_decode(struct span text, uint8_t *out, size_t size, size_t *ret_len);
