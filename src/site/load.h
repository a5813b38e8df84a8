/* SPDX-License-Identifier: MIT
 *
 * Making an entry of what was sighted on the disk, and telling whether an entry
 * is still what a new lookup would make. Private to site/.
 */
#pragma once

#include "site/lookup.h"

/* Loads what `lookup` holds into an entry for `key`, with one reference, the
 * caller's. Descriptors that the entry keeps are taken from the lookup.
 * SITE_FILE, SITE_BUSY or SITE_BROKEN. */
enum site_result site_load(const struct site *site, struct site_lookup *lookup, struct span key,
                           uint64_t hash, uint64_t now_ns, struct site_entry **ret_entry);

/* Whether loading `lookup` would give the same answer again. False as well when
 * the entry was loaded so soon after its last change that another could have
 * followed without leaving a trace in the file's times. */
bool site_entry_matches(const struct site_entry *entry, const struct site_lookup *lookup);

/* Whether the entry holds one version of its file; false when the file changed
 * under every attempt at reading it, and then nobody else should get the entry. */
bool site_entry_is_whole(const struct site_entry *entry);

/* The hash of the last SITE_END_BYTES before `size` of an open file. 0 or -errno. */
MUST_USE int site_hash_end(int fd, uint64_t size, uint64_t *ret_hash);
