/* SPDX-License-Identifier: MIT
 *
 * Byte ranges (RFC 9110 section 14): which parts of a file a Range field asks
 * for, put in a form that cannot be used to make us send more than the file.
 */
#pragma once

#include "base/span.h"
#include "http/limits.h"

#include <stdint.h>

struct http_range {
    uint64_t first; /* offset of the first byte */
    uint64_t len;   /* at least 1 */
};

struct http_ranges {
    struct http_range range[HTTP_RANGES_MAX];
    unsigned count;
};

enum http_range_result {
    HTTP_RANGE_IGNORE,       /* not `bytes`, malformed, or too many: send the whole file (200) */
    HTTP_RANGE_SATISFIABLE,  /* at least one range; 206 */
    HTTP_RANGE_UNSATISFIABLE /* well formed, and none of it inside the file; 416 */
};

/* Reads a Range field against a representation of `size` bytes. Unsatisfiable
 * ranges among satisfiable ones are dropped; ranges that overlap or touch are
 * merged where the first of them stands, so the sum of lengths is at most
 * `size`; the others keep the order asked for. Numbers past UINT64_MAX are
 * clamped, not wrapped. The last bytes of an empty file (`bytes=-5`) are
 * satisfiable by section 14.1.2, but no Content-Range can name them: IGNORE.
 * `ret_ranges` is written only for SATISFIABLE. */
enum http_range_result http_range_parse(struct span field, uint64_t size,
                                        struct http_ranges *ret_ranges);
