/* SPDX-License-Identifier: MIT
 *
 * The built-in error page: small, readable in light and dark, no request
 * leaves it. Sites bring their own through site_find_error_page.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct site_errorpage {
    unsigned status;
    struct span reason, sentence; /* plain text from the status table; the sentence may be empty */
    uint64_t id;                  /* of the request, by which its line in the log is found */
};

/* Writes the page to `out` and returns its length in bytes; at most SITE_ERRORPAGE_MAX. It is as
 * long for every id. */
enum { SITE_ERRORPAGE_MAX = 2048 };
size_t site_errorpage_render(char *out, size_t size, const struct site_errorpage *content);
