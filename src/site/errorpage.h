/* SPDX-License-Identifier: MIT
 *
 * The built-in error page: small, readable in light and dark, without any further request. A
 * site's own pages come from site_find_error_page.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct site_errorpage {
    unsigned status;
    struct span reason, sentence; /* plain text from the status table; the sentence may be empty */
    uint64_t id;                  /* of the request; finds its line in the access log */
};

/* Writes the page to `out` and returns its length in bytes, at most SITE_ERRORPAGE_MAX. The length
 * does not depend on the id. */
enum { SITE_ERRORPAGE_MAX = 2048 };
size_t site_errorpage_render(char *out, size_t size, const struct site_errorpage *content);
