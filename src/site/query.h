/* SPDX-License-Identifier: MIT
 *
 * One lookup as its caller wants it, with the name of its entry in the cache. The steps of a lookup
 * are here, too, for site/fetch.h. They are private to site/.
 */
#pragma once

#include "site/site.h"

struct site_lookup;

struct site_query {
    enum {
        SITE_QUERY_PATH = 0, /* as site_find */
        SITE_QUERY_FALLBACK, /* `path` is below the root, without a leading slash */
        SITE_QUERY_ERROR_PAGE,
        SITE_QUERY_LISTING
    } kind;
    const struct site_view *view; /* NULL: what the options say */
    struct span path;
    struct span key; /* the caller gives a different key for each head and each view. It is `path`,
                        or does not begin with '/' */
    uint64_t hash;   /* of the key; site_find_query sets it */
    int pages_fd;    /* of a SITE_QUERY_ERROR_PAGE */
    const struct site_listing_request *listing; /* of a SITE_QUERY_LISTING */
    bool may_render;                            /* the same: false: only the cache answers, and
                                                   SITE_BUSY means that it cannot */
};

/* The error page of a status. `folder`: 0 is error_pages of the options, and others are the
 * error_folders, counted from 1. The key is in `storage`. False: there is no such folder. */
enum { SITE_QUERY_ERROR_PAGE_MAX = sizeof("error4294967295/4294967295.html") };
bool site_query_error_page(const struct site *site, unsigned folder, unsigned status,
                           char storage[SITE_QUERY_ERROR_PAGE_MAX], struct site_query *ret_query);

/* A listing. Its key is in the `size` bytes of `storage`. False: they do not hold it. */
bool site_query_listing(const struct site_listing_request *request, bool may_render, char *storage,
                        size_t size, struct site_query *ret_query);

/* ---- private to site/ ---- */

/* Sets the hash, and a view that is NULL. */
void site_query_complete(const struct site *site, struct site_query *query);

/* The entry in the cache, fresh or not, or NULL. */
struct site_entry *site_query_find_entry(const struct site *site, struct site_cache_reader *reader,
                                         const struct site_query *query);

/* As site_lookup, and as site_load. */
enum site_result site_query_look_up(const struct site *site, const struct site_query *query,
                                    enum site_patience patience, struct site_lookup *ret_lookup);
enum site_result site_query_load(const struct site *site, const struct site_query *query,
                                 struct site_lookup *lookup, uint64_t now_ns,
                                 struct site_entry **ret_entry);

/* Claims the comparison of a stale entry with the disk for this thread. Other threads use the entry
 * meanwhile. *ret_checked_ns is when it was last compared. False when another thread was first. */
bool site_query_claim_recheck(struct site_entry *entry, uint64_t *ret_checked_ns, uint64_t now_ns);

/* The disk gave no answer to a comparison that was claimed at `claimed_ns`. The next request makes
 * it. */
void site_query_return_recheck(struct site_entry *entry, uint64_t checked_ns, uint64_t claimed_ns);
