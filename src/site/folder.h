/* SPDX-License-Identifier: MIT
 *
 * The contents of a directory that can be shown, in order. Private to site/.
 */
#pragma once

#include "site/listing.h"

#include <stdint.h>

struct site_folder_row {
    uint64_t size; /* bytes; 0 for a directory */
    int64_t modified_s;
    uint64_t key_start; /* the first bytes of the sort key, big-endian */
    uint32_t name_at;   /* in `names`; a NUL and the sort key follow the name */
    uint16_t name_len, key_len;
    bool directory;
};

struct site_folder {
    struct site_folder_row *rows;
    size_t count;
    size_t directories; /* how many of the rows are directories */
    char *names;
    size_t left_out; /* names behind the limit, which were not examined */
    bool cut;        /* there are more names, which were not read */
};

/* Reads the directory of a request, which is open as *fd; takes *fd. Names that cannot be served
 * are left out: hidden names, devices, links that are dead or lead out of the root, names with
 * control bytes. Of more than SITE_LISTING_ENTRIES_MAX names, the first are examined: directories
 * before files, each by name. Returns 0 or -errno; -ECANCELED: the request was stopped. */
MUST_USE int site_folder_read(const struct site *site, const struct site_listing_request *request,
                              int *fd, struct site_folder *ret_folder);

/* Sorts directories first, then by `order`, and equal rows by name. `descending` reverses each
 * group. */
void site_folder_sort(struct site_folder *folder, enum site_listing_order order, bool descending);

/* Leaves out what the request does not show. */
void site_folder_filter(struct site_folder *folder, const struct site_listing_request *request);

void site_folder_free(struct site_folder *folder);

static inline struct span site_folder_name(const struct site_folder *folder,
                                           const struct site_folder_row *row)
{
    return span_of(folder->names + row->name_at, row->name_len);
}
