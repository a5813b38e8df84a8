/* SPDX-License-Identifier: MIT
 *
 * Byte ranges (RFC 9110 section 14): the parts of a file that a Range field requests, in a form
 * that never adds up to more than the file.
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
    HTTP_RANGE_UNSATISFIABLE /* well formed, and all outside the file; 416 */
};

/* Reads a Range field for a representation of `size` bytes. Unsatisfiable ranges beside
 * satisfiable ones are dropped. Ranges that overlap or touch are merged at the place of the
 * first of them, so the sum of lengths is at most `size`. The other ranges keep their order.
 * Numbers above UINT64_MAX are clamped. The last bytes of an empty file (`bytes=-5`) are
 * satisfiable by section 14.1.2, but no Content-Range can name them: IGNORE. `ret_ranges` is
 * written only for SATISFIABLE. */
enum http_range_result http_range_parse(struct span field, uint64_t size,
                                        struct http_ranges *ret_ranges);
