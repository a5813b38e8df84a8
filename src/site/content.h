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

/* A new form has space for an entity tag. One in memory has `head_room` bytes before its body, too,
 * for the heads. With SITE_CACHED_ONLY only bytes are read that the kernel has in memory. Without
 * them the result is -EINPROGRESS. */

/* Reads a file into a form in memory, or makes an empty open form of a file that is larger than
 * `body_max`. *identity becomes that of the version that was read. *ret_whole is false when the
 * file changed during every attempt. Returns 0 or -errno. */
MUST_USE int site_content_read(int fd, enum site_patience patience, struct site_identity *identity,
                               size_t body_max, size_t head_room, struct site_file **ret_file,
                               bool *ret_whole);

/* A form of these bytes in memory, or one for a file that is kept open. NULL without memory. */
struct site_file *site_content_copy(size_t head_room, struct span bytes);
struct site_file *site_content_open(uint64_t size);

/* Makes a form of malloc's memory that begins with SITE_CONTENT_BEGIN bytes and has `len` in all.
 * The body is behind the space for heads. */
enum { SITE_CONTENT_ETAG = 2 + 16 + 1 + 16 + 4 }; /* quotes, time, '-', size, "-zst" */
#define SITE_CONTENT_BEGIN (sizeof(struct site_file) + SITE_CONTENT_ETAG)
struct site_file *site_content_over(char *memory, size_t head_room, size_t len);

/* The space for heads in a new form of this site, in bytes. */
static inline size_t site_content_head_room(const struct site *site)
{
    return SITE_HEAD_ROOM + 2 * site->options->fields_max;
}

/* Closes an open file and frees the form, which is one of this site. Accepts NULL. */
void site_content_free(const struct site *site, struct site_file *file);

/* All memory of a form, in bytes. */
size_t site_content_bytes(const struct site_file *file);

/* Copies a tag of at most SITE_CONTENT_ETAG bytes into a form without heads. */
void site_content_set_etag(struct site_file *file, struct span etag);

/* Copies a form in memory into the memory of cached files, without the unused space for heads and
 * without the tag that is also in the head. The block begins with `before` bytes for the caller.
 * `key` ends where the heads begin. NULL: the form stays where it is. It is open, there is no
 * memory, or the site has no allocator and the copy would free little. */
char *site_content_pack(const struct site *site, const struct site_file *file, size_t before,
                        struct span key);

/* Where the heads of a form begin, counted from the form. */
static inline size_t site_content_head_at(const struct site_file *file)
{
    return file->end_at - (size_t)file->head_len - file->block_len;
}

/* The open form of a form with `open`. */
static inline struct site_open_file *site_content_opened(struct site_file *file)
{
    return (struct site_open_file *)file;
}

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
 * `began_ns` (RFC 9110 section 8.8.2.1). 0: none, because 32 bits do not hold it. */
uint32_t site_content_last_modified_s(const struct site_identity *identity, int64_t began_ns);

/* Sets the entity tag of form `v`: of its bytes if they are in memory, else of size and time. */
void site_content_make_etag(struct site_file *file, int v);

/* The digest of a form that is not in memory, piece by piece. All pieces but the last one have
 * SITE_CONTENT_PIECE bytes. Like base/hash.h, it tells versions apart and is no signature. */
enum { SITE_CONTENT_PIECE = 16 * 1024 };
struct site_content_digest {
    uint64_t lane[2];
};
struct site_content_digest site_content_digest_begin(int v);
void site_content_digest_add(struct site_content_digest *digest, struct span piece);

/* Sets the entity tag of a form with this digest. */
void site_content_set_digest(struct site_file *file, const struct site_content_digest *digest);

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
