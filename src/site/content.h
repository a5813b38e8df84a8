/* SPDX-License-Identifier: MIT
 *
 * The bytes of one form of a file, and the validators that follow from them. Which forms an entry
 * has is in load.h.
 *
 * `weir trace` explains with it. Otherwise it is private to site/.
 */
#pragma once

#include "site/lookup.h"

#include <stdint.h>

/* Bodies in memory have `head_room` bytes before them, for the head. With SITE_CACHED_ONLY only
 * bytes are read that the kernel has in memory. Without them the result is -EINPROGRESS. */

/* Reads a file into memory, unless it is larger than `body_max`; then the body stays NULL.
 * *identity becomes that of the version that was read. *ret_whole is false when the file changed
 * during every attempt. Returns 0 or -errno. */
MUST_USE int site_content_read(int fd, enum site_patience patience, struct site_identity *identity,
                               size_t body_max, size_t head_room, struct site_file *file,
                               bool *ret_whole);

/* Gives a form these bytes, in memory of its own. False without memory. */
bool site_content_copy(struct site_file *file, size_t head_room, struct span bytes);

/* Frees the unused space for heads, if there is much of it. The body and the heads may move.
 * Returns the number of bytes that it has freed. */
size_t site_content_trim(struct site_file *file);

/* Whether a change after `began_ns` certainly changes the times of the file. */
bool site_content_is_settled(const struct site_identity *identity, int64_t began_ns);

/* Whether a modification time says when the content changed. Build tools and container images give
 * all files one time. These times are no date:
 * - the first two seconds of 1970, and all before;
 * - the constants that tools write (content.c);
 * - a whole second that the site's root folder has, too.
 * With SITE_ETAG_TIME only the first kind is no date, and with SITE_ETAG_CONTENT all times are. */
bool site_content_is_dated(const struct site *site, int64_t modified_ns);

/* The modification time as Last-Modified has it, in seconds: no later than the load, which began at
 * `began_ns` (RFC 9110 section 8.8.2.1). */
int64_t site_content_last_modified_s(const struct site_identity *identity, int64_t began_ns);

/* Writes the entity tag of form `v`: of its bytes if they are in memory, else of size and time. */
enum { SITE_CONTENT_ETAG = 2 + 16 + 1 + 16 + 4 }; /* quotes, time, '-', size, "-zst" */
struct span site_content_etag(char out[SITE_CONTENT_ETAG], const struct site_file *file, int v);

/* The digest of a form that is not in memory, piece by piece. All pieces but the last one have
 * SITE_CONTENT_PIECE bytes. Like base/hash.h, it tells versions apart and is no signature. */
enum { SITE_CONTENT_PIECE = 16 * 1024 };
struct site_content_digest {
    uint64_t lane[2];
};
struct site_content_digest site_content_digest_begin(int v);
void site_content_digest_add(struct site_content_digest *digest, struct span piece);

/* Writes the entity tag of a form with this digest. */
struct span site_content_digest_etag(char out[SITE_CONTENT_ETAG],
                                     const struct site_content_digest *digest);

/* Open files up to the first size are read for their tag while they are loaded. The compressor
 * reads larger ones (compressor.h), up to the second size. The largest files have no tag. */
#define SITE_CONTENT_AT_ONCE (UINT64_C(1) << 20)
#define SITE_CONTENT_LARGEST (UINT64_C(1) << 30)

/* Digests an open form of at most SITE_CONTENT_AT_ONCE bytes. 0 or -errno. -EAGAIN: it is not the
 * version of `identity` any more. */
MUST_USE int site_content_digest_file(int fd, enum site_patience patience, int v,
                                      const struct site_identity *identity,
                                      struct site_content_digest *ret_digest);

/* The hash of the last SITE_END_BYTES before `size` of an open file. 0 or -errno. */
MUST_USE int site_content_hash_end(int fd, enum site_patience patience, uint64_t size,
                                   uint64_t *ret_hash);
