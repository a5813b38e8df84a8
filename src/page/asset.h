/* SPDX-License-Identifier: MIT
 *
 * The files of the statistics page, which the program carries: what lies in
 * src/page/www/, and the chart library of the system that it was built on.
 */
#pragma once

#include "base/span.h"

struct page_asset {
    const char *path; /* "/page.js" */
    const char *type; /* media type */
    const char *tag;  /* of the content: what stands in its ETag, without quotes */
    struct span plain;
    struct span gzip; /* the same, compressed */
};

/* The file of that path; NULL: there is none. */
const struct page_asset *page_asset_find(struct span path);
