/* SPDX-License-Identifier: MIT
 *
 * The listing of a folder, for an exchange. A loop renders no listing. A thread of the process
 * renders it, once for all requests that need it (site/fetch.h), and their answers are pending
 * meanwhile. A thread that serves one connection renders in its call. Other such threads that need
 * the same listing wait for it, and then find it in the cache.
 *
 * The setting `listings` limits how many are rendered at a time. A listing that the cache does not
 * keep counts until its last byte is sent, because only answers use its memory.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"
#include "session/head.h"

struct session_listing {
    struct site_entry *entry;
    bool fresh;  /* rendered for this request, which has a reference */
    bool counts; /* in the limit, until session_listing_answered or the end of the answer */
    enum session_publication published;
};

/* Finds or renders the listing of the folder at the path of the request. SITE_FILE: *ret_listing is
 * published. The caller answers with it, and calls session_listing_answered. SITE_BUSY: x->pending
 * is set, too many listings are rendered, or memory or a descriptor is missing. */
enum site_result session_listing_find(struct session_exchange *x, enum site_listing_form form,
                                      struct session_listing *ret_listing);

/* The answer with the listing is open or staged. */
void session_listing_answered(struct session_exchange *x, const struct session_listing *listing);
