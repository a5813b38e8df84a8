/* SPDX-License-Identifier: MIT
 *
 * Numbers from text and to text, without errno, locale or surprises with signs.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

enum { NUM_U64_DIGITS = 20 }; /* digits of the largest uint64_t */

/* Reads a span of decimal digits only (no sign, no space). Returns false when it is empty, has any
 * other byte, or exceeds UINT64_MAX. `ret_value` is written only on success. Leading zeros are
 * decimal zeros. */
bool num_parse_u64(struct span text, uint64_t *ret_value);

/* The same for hexadecimal digits of either case, at most 16 of them after
 * leading zeros are dropped. */
bool num_parse_hex(struct span text, uint64_t *ret_value);

/* Writes the decimal digits of `value` to `out` (at least NUM_U64_DIGITS bytes,
 * no NUL). Returns how many were written. */
size_t num_format_u64(char *out, uint64_t value);

/* Writes `value` to `out` as exactly NUM_HEX_DIGITS lower-case digits, no NUL. */
enum { NUM_HEX_DIGITS = 16 };
void num_format_hex(char *out, uint64_t value);

/* The value of one hexadecimal digit, or -1. */
int num_hex_digit(char c);
