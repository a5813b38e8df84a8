/* SPDX-License-Identifier: MIT
 *
 * Tokens, the words of HTTP: methods, field names, codings (RFC 9110 section 5.6.2).
 */
#pragma once

#include "base/span.h"

/* 1 for each byte that may stand in a token. */
extern const unsigned char http_token_bytes[256];

static inline bool http_token_byte(char c)
{
    return http_token_bytes[(unsigned char)c] != 0;
}

/* Whether the whole span is one token; an empty one is not. */
bool http_token_valid(struct span text);
