/* SPDX-License-Identifier: MIT
 *
 * The built-in error page: small, readable in light and dark, no request
 * leaves it. Sites bring their own through site_find_error_page.
 */
#pragma once

#include "base/span.h"

/* Writes the page for `status` to `out` and returns its length in bytes; at most
 * SITE_ERRORPAGE_MAX. `reason` and `sentence` are plain text from the status table. */
enum { SITE_ERRORPAGE_MAX = 2048 };
size_t site_errorpage_render(char *out, size_t size, unsigned status, struct span reason,
                             struct span sentence);
