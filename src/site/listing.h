/* SPDX-License-Identifier: MIT
 *
 * Directory listings, as a page or as JSON. Directories come first, then names in natural order:
 * img2 before img10.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

struct site;

enum site_listing_form { SITE_LISTING_HTML, SITE_LISTING_JSON };
enum site_listing_order { SITE_LISTING_BY_NAME, SITE_LISTING_BY_SIZE, SITE_LISTING_BY_TIME };

struct site_listing_request {
    struct span path;  /* of the directory, decoded, ends with '/' */
    struct span query; /* "sort=name|size|time&order=asc|desc"; anything else is ignored */
    enum site_listing_form form;
};

/* Renders the directory into new memory, which the caller frees with free(). Names that cannot be
 * served are left out: hidden names (unless the site shows them), devices and the like, links
 * that are dead or lead out of the root. At most SITE_LISTING_ENTRIES_MAX entries are read, and
 * the page says when there are more. The JSON form is an array of
 *   {"name":"a","type":"file","size":308,"modified":"2026-11-21T08:00:00Z"}
 * with type "directory" and size null for directories. Both forms are UTF-8.
 * Returns 0, -EACCES or -ENOENT (not to be shown), or another -errno. */
enum { SITE_LISTING_ENTRIES_MAX = 100000 };
MUST_USE int site_listing_render(const struct site *site,
                                 const struct site_listing_request *request, char **ret_text,
                                 size_t *ret_len);
