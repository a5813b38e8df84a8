/* SPDX-License-Identifier: MIT
 *
 * A site: one folder of files, opened once, and what may be served from it.
 * It turns a decoded path into an entry (an open file, or its bytes, with its
 * validators), a directory to redirect to, a listing, or a reason why not.
 *
 * It knows files, not HTTP: no status, no field, no method. The one thing it
 * keeps for its caller is the `head` of an entry, ready-made bytes that it
 * stores and never reads.
 */
#pragma once

#include "site/cache.h"

#include <stdint.h>

struct site_mime;

/* How a file may be stored beside the plain one; the same order as the bits of
 * site_find's `wanted`. Plain is always last. */
enum site_variant { SITE_BR, SITE_ZSTD, SITE_GZIP, SITE_PLAIN, SITE_VARIANTS };

struct site_options {
    const char *name;         /* for messages; unique */
    const char *root;         /* directory */
    const char *const *index; /* index file names in order, NULL at the end */
    const char *fallback;     /* path below the root sent when nothing is found (single-page
                                  applications), or NULL */
    const char *error_pages;  /* directory with 404.html and the like, or NULL */
    bool listing;             /* directories without an index file are listed */
    bool precompressed;       /* .br, .zst and .gz siblings are looked for */
    bool hidden;              /* names that begin with a dot are served too */
    size_t body_max;          /* bytes of a file kept in memory; larger ones are kept open */
};

enum site_result {
    SITE_FILE,      /* *ret_entry is what to send */
    SITE_REDIRECT,  /* a directory, and the path lacks its final slash */
    SITE_LISTING,   /* a directory without an index file; list it with site/listing.h */
    SITE_ABSENT,    /* nothing there, or nothing that may be known of */
    SITE_FORBIDDEN, /* there, but not readable, not a file, or outside the root */
    SITE_BUSY,      /* out of descriptors or memory just now */
    SITE_BROKEN     /* the disk failed */
};

/* One stored form of a file. */
struct site_file {
    int fd;           /* open for reading while the entry lives; -1 when `body` holds all of it */
    const char *body; /* the bytes, or NULL when they are in `fd` */
    uint64_t size;    /* of the file, bytes */
    int64_t modified_ns; /* mtime; since 1970 */
    uint64_t end_hash;   /* of the last SITE_END_BYTES of an open file */
    struct span etag;    /* quoted and strong; empty when nothing trustworthy identifies the bytes:
                           by content where the bytes are in memory, else by size and mtime, and
                           none for mtimes of 0 or 1 s (reproducible builds) or within the tick
                           of a clock before the load (another version could share it) */
    int64_t
        last_modified_s; /* seconds for Last-Modified, never later than the load; -1 when none */
    struct span head;    /* ready-made bytes of the caller's (site_set_head), or empty */
    uint16_t marks[4];   /* the caller's own offsets into `head` */
};

/* A path's answer. Reference-counted (cache.h): valid until the reader's next
 * quiesce, or for as long as it is held. Immutable once published, but for
 * `checked_ns`. */
struct site_entry {
    struct site_cache_entry cache; /* first */
    const struct site *site;
    struct span type; /* media type, Content-Type's value; borrowed from the mime table */
    uint8_t variants; /* bit 1 << enum site_variant: which of `file` there are */
    bool negotiable;  /* more than one variant: the answer depends on Accept-Encoding */
    _Atomic uint64_t checked_ns; /* when the disk was last asked about it */
    struct site_file file[SITE_VARIANTS];
};

/* Opens the root and reads the options' files. On failure -errno, and *ret_what
 * names the path that failed. The options and what they point to are borrowed
 * for the site's life. `mime` too. */
MUST_USE int site_open(struct site **ret_site, const struct site_options *options,
                       const struct site_mime *mime, const char **ret_what);
void site_close(struct site *site);
const struct site_options *site_options(const struct site *site);

/* How long an entry is used before the disk is asked again. A change on disk is
 * seen by every request that comes this long after it, or as long as one look at
 * the disk takes later, while another thread is at it. A file that is kept open
 * is looked at each time: its length is about to be announced. */
#define SITE_FRESH_NS UINT64_C(500000000)

/* Finds what to answer for `path` (decoded, normalised, begins with '/').
 *
 * A fresh entry in the cache is all a hit costs. An entry that is not fresh is
 * compared with the disk first, and replaced when anything about the file, its
 * siblings, or which index file is chosen has changed.
 *
 * On SITE_FILE, *ret_entry is either in the cache (*ret_new false), or newly
 * loaded and not yet published (*ret_new true): then the caller holds its only
 * reference, gives each variant its head (site_set_head), and hands it over with
 * site_publish, or lets go with site_cache_release. */
enum site_result site_find(const struct site *site, struct site_cache_reader *reader,
                           struct span path, uint64_t now_ns, struct site_entry **ret_entry,
                           bool *ret_new);

/* The same for the fallback file, an error page of this code, and nothing else. */
enum site_result site_find_fallback(const struct site *site, struct site_cache_reader *reader,
                                    uint64_t now_ns, struct site_entry **ret_entry, bool *ret_new);
enum site_result site_find_error_page(const struct site *site, struct site_cache_reader *reader,
                                      unsigned status, uint64_t now_ns,
                                      struct site_entry **ret_entry, bool *ret_new);

/* Copies ready-made bytes into an unpublished entry. They stand directly before
 * the body in memory when there is one (head.at + head.len == body), where there
 * is room for SITE_HEAD_ROOM of them. Returns false when they are longer, or
 * without memory; the entry is then still good without a head. */
enum { SITE_HEAD_ROOM = 1024 };
bool site_set_head(struct site_entry *entry, enum site_variant variant, struct span head);

/* Offers an entry to the cache, which may refuse it: too large for it, or of a
 * file that changed all the while it was read. The caller's reference stays the
 * caller's either way. */
void site_publish(struct site_cache_reader *reader, struct site_entry *entry);

/* Reads `len` bytes at `offset` of a variant, open or in memory; 0 or -errno
 * (-ENODATA: it is, or has become, shorter). */
MUST_USE int site_file_read(const struct site_file *file, char *bytes, size_t len, uint64_t offset);

/* Whether the bytes that were measured are, as far as can be told, still those of
 * the file behind an open variant: false when it was truncated or rewritten in
 * place, true when it has merely grown, as logs do. A file that grew is told from
 * one that was rewritten longer by the bytes at its old end. */
enum { SITE_END_BYTES = 1024 };
bool site_file_unchanged(const struct site_file *file);
