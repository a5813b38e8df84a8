/* SPDX-License-Identifier: MIT
 *
 * Directory listings, as a page or as JSON. Directories come first, then names in natural order:
 * img2 before img10.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdatomic.h>
#include <stdint.h>

struct site;
struct site_view;

enum site_listing_form { SITE_LISTING_HTML, SITE_LISTING_JSON };
enum site_listing_order { SITE_LISTING_BY_NAME, SITE_LISTING_BY_SIZE, SITE_LISTING_BY_TIME };

struct site_listing_request {
    struct span path;  /* of the directory, decoded, ends with '/' */
    struct span query; /* "sort=name|size|time&order=asc|desc"; anything else is ignored */
    enum site_listing_form form;
    const struct site_view *view; /* NULL: that of the options */
    /* Whether a name is shown: the path of a file or, with a slash at its end, of a directory. The
     * same for all requests with this path. NULL: all names are. Called in the rendering thread. */
    bool (*shows)(const void *context, struct span path);
    /* The same for the text of the file README at a path. */
    bool (*quotes)(const void *context, struct span path);
    const void *context;
    size_t context_bytes; /* a fetch copies so many bytes of the context. 0: it copies none */
    /* No request waits for the listing any more, and rendering ends. NULL: it does not. */
    const _Atomic bool *stopped;
};

/* How many listings a process has that are not in its cache: those that are rendered now, and those
 * that an answer sends. Any thread. */
struct site_listing_limit {
    unsigned max; /* 0: no limit */
    _Atomic unsigned count;
};

/* Counts one more, until site_listing_end. False: there are as many as the limit allows. */
bool site_listing_begin(struct site_listing_limit *limit);

/* Counts one that exists already, also beyond the limit. */
void site_listing_count(struct site_listing_limit *limit);
void site_listing_end(struct site_listing_limit *limit);

/* A listing shows at most so many entries of a directory. Its last line says how many names it
 * leaves out. At most so many names are read; if there are more, the last line says so. */
enum { SITE_LISTING_ENTRIES_MAX = 10000, SITE_LISTING_NAMES_MAX = 100000 };

/* While its directory does not change, a listing is used for SITE_FRESH_NS and so many nanoseconds
 * more for each of its entries. */
#define SITE_LISTING_ENTRY_NS UINT64_C(2000000)

/* The media type of a form. Static. */
struct span site_listing_type(enum site_listing_form form);

/* Renders the directory that is open as *fd, and takes *fd. The text is new memory, which the
 * caller frees with free(). Its first `room` bytes are free for the caller, and count in
 * *ret_len. *ret_entries is the number of entries shown.
 *
 * A listing leaves out names that cannot be served: hidden names (unless the site shows them),
 * devices and the like, and links that are dead or lead out of the root. It also leaves out names
 * that the request does not show.
 * The JSON form is an array of
 *   {"name":"a.txt","type":"file","size":308,"modified":"2026-11-21T08:00:00Z",
 *    "media_type":"text/plain; charset=utf-8"}
 * with type "directory" and the size and media_type null for directories. When names are left out,
 * the last element is {"type":"omitted","count":7}, and with more than SITE_LISTING_NAMES_MAX names
 * its count is the least. Both forms are UTF-8. Returns 0 or -errno;
 * -ECANCELED: the request was stopped. */
MUST_USE int site_listing_render(const struct site *site,
                                 const struct site_listing_request *request, int *fd, size_t room,
                                 char **ret_text, size_t *ret_len, size_t *ret_entries);

/* Identifies what a request gets: its form, its order and its path. False when `size` bytes do not
 * hold it. The keys of files begin with '/', and this one does not. */
bool site_listing_key(const struct site_listing_request *request, char *out, size_t size,
                      size_t *ret_len);
