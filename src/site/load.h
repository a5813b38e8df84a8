/* SPDX-License-Identifier: MIT
 *
 * Makes an entry of a lookup, and tells whether an entry still equals a new lookup. Private to
 * site/.
 */
#pragma once

#include "site/listing.h"
#include "site/lookup.h"

/* Entries of a site. */
extern const struct site_cache_kind site_load_kind;

/* Loads a lookup into an entry for `key`, with one reference, the caller's. Takes from the lookup
 * the descriptors that the entry keeps. Returns SITE_FILE, SITE_BUSY or SITE_BROKEN, and
 * SITE_NOT_IN_MEMORY where the patience of the lookup does not suffice. */
enum site_result site_load(const struct site *site, struct site_lookup *lookup, struct span key,
                           uint64_t hash, struct site_entry **ret_entry);

/* The same for the listing of the directory that the lookup has opened. SITE_NOT_IN_MEMORY: the
 * request was stopped. */
enum site_result site_load_listing(const struct site *site, struct site_lookup *lookup,
                                   const struct site_listing_request *request, struct span key,
                                   uint64_t hash, uint64_t now_ns, struct site_entry **ret_entry);

/* Whether loading `lookup` would give the same entry. False as well when the entry was loaded so
 * soon after the file's last change that another change could have left the same times. False
 * for a listing whose time is over. */
bool site_load_matches(const struct site_entry *entry, const struct site_lookup *lookup,
                       uint64_t now_ns);

/* For an entry that matches `lookup`: the same entry with the forms and tags that the compressor
 * has made since, in memory of its own, with one reference, the caller's. Takes from the lookup the
 * descriptors that the entry keeps. NULL: there are none, or no memory or descriptor is free
 * now. */
struct site_entry *site_load_with_made(struct site_entry *entry, struct site_lookup *lookup);

/* An entry for `key` whose plain form is a copy of `bytes`: the difference of the plain file of
 * `of` from a dictionary. It has one reference, the caller's, and is never compared with the disk.
 * NULL without memory. */
struct site_entry *site_load_delta(const struct site_entry *of, struct span key, uint64_t hash,
                                   struct span bytes);

/* For the compressor, which holds the entry: whether an open form still is the version that was
 * loaded, and whether that form can have the tag of its content, and has none. */
bool site_load_is_current(const struct site_entry *entry, int v);
bool site_load_lacks_tag(const struct site_entry *entry, int v);
