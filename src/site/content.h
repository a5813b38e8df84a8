/* SPDX-License-Identifier: MIT
 *
 * The bytes of one form of a file, and the validators that follow from them. Which forms an entry
 * has is in load.h.
 *
 * Private to site/.
 */
#pragma once

#include "site/lookup.h"

/* Bodies in memory have `head_room` bytes before them, for the head. */

/* Reads a file into memory, unless it is larger than `body_max`; then the body stays NULL.
 * *identity becomes that of the version that was read. *ret_whole is false when the file changed
 * during every attempt. Returns 0 or -errno. */
MUST_USE int site_content_read(int fd, struct site_identity *identity, size_t body_max,
                               size_t head_room, struct site_file *file, bool *ret_whole);

/* Gives a form these bytes, in memory of its own. False without memory. */
bool site_content_copy(struct site_file *file, size_t head_room, struct span bytes);

/* Whether a change after `began_ns` certainly changes the times of the file. */
bool site_content_is_settled(const struct site_identity *identity, int64_t began_ns);

/* Writes the entity tag of form `v`. It is empty when the form is not in memory and its size and
 * time are not `trustworthy`. */
enum { SITE_CONTENT_ETAG = 2 + 16 + 1 + 16 + 4 }; /* quotes, time, '-', size, "-zst" */
struct span site_content_etag(char out[SITE_CONTENT_ETAG], const struct site_file *file, int v,
                              bool trustworthy);

/* The hash of the last SITE_END_BYTES before `size` of an open file. 0 or -errno. */
MUST_USE int site_content_hash_end(int fd, uint64_t size, uint64_t *ret_hash);
