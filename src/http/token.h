/* SPDX-License-Identifier: MIT
 *
 * Tokens (RFC 9110 section 5.6.2): methods, field names and codings are made of them.
 */
#pragma once

#include "base/span.h"

/* 1 for each byte that a token may have. */
extern const unsigned char http_token_bytes[256];

static inline bool http_token_byte(char c)
{
    return http_token_bytes[(unsigned char)c] != 0;
}

/* Whether the whole span is one token. An empty span is none. */
bool http_token_valid(struct span text);
