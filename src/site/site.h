/* SPDX-License-Identifier: MIT
 *
 * A site: one folder of files, opened once, and what may be served from it. A site turns a
 * decoded path into an entry, a redirect to a directory, a listing, or a reason for a refusal. An
 * entry is an open file or its bytes, with validators.
 *
 * It knows files, not HTTP: no status, field or method. For its caller it stores the `head` of
 * each entry, which are ready-made bytes that it never reads.
 */
#pragma once

#include "site/cache.h"

#include <stdint.h>

struct site;
struct site_listing_request;
struct site_mime;

/* The forms of a file: stored ones, or made by the server. The plain file is always last. */
enum site_variant { SITE_BR, SITE_ZSTD, SITE_GZIP, SITE_PLAIN, SITE_VARIANTS };

/* The source of entity tags. The tag of a file in memory is always made of its content. */
enum site_etag {
    SITE_ETAG_AUTO,   /* an open file: size and time, or the content if the time is no date */
    SITE_ETAG_TIME,   /* an open file: size and time. It is never read for its tag */
    SITE_ETAG_CONTENT /* the content of every file. Times mean nothing: no Last-Modified */
};

struct site_options {
    const char *name;         /* for messages; unique */
    const char *root;         /* directory; NULL: no path has a file, and all are absent */
    const char *const *index; /* index file names in order, NULL at the end */
    const char *fallback;     /* path below the root, sent for a path that is not there (single-page
                                  applications); or NULL */
    const char *error_pages;  /* directory with 404.html and the like, or NULL */
    const char *const *error_folders; /* more such directories, NULL at the end; or NULL */
    bool listing;                     /* directories without an index file are listed */
    bool scripts;                     /* pages that the site makes may have a script within */
    bool precompressed;               /* .br, .zst and .gz siblings are used */
    bool hidden;                      /* names that begin with a dot are served, too */
    bool rule_files;                  /* `_headers` and `_redirects` in the root are not served */
    bool markdown; /* page.md may answer in place of page.html (site_entry.markdown) */
    enum site_etag etag;
    bool digests; /* the compressor may read a large open file for its tag. Constant while the site
                     is in use */
    uint8_t compress;  /* bits 1 << enum site_variant: what the server may make itself of a
                                 file without siblings (site/compressor.h). Constant while the
                                 site is in use */
    size_t body_max;   /* larger files are kept open, not in memory */
    size_t fields_max; /* a head may have this many bytes more than SITE_HEAD_ROOM */
    struct site_allocator *allocator; /* of the cached files; NULL: malloc */
    uint32_t open_files_max; /* files that all entries of the process may keep open, in the cache or
                                only in answers; beyond it, loading a large file is SITE_BUSY. 0:
                                no limit */
};

/* What the options say, or in their place the rules of a path. */
struct site_view {
    const char *const *index; /* as in the options */
    const char *fallback;     /* as in the options */
    bool hidden;
};

enum site_result {
    SITE_FILE,         /* a file: *ret_entry */
    SITE_REDIRECT,     /* the path needs a final slash: it is that of a directory */
    SITE_LISTING,      /* a directory without an index file; site_find_listing */
    SITE_ABSENT,       /* not there, or hidden */
    SITE_FORBIDDEN,    /* not readable, not a file, or outside the root */
    SITE_BUSY,         /* no descriptor or memory is free now */
    SITE_BROKEN,       /* the disk failed */
    SITE_NOT_IN_MEMORY /* only the disk knows, and the caller must not wait for it */
};

/* Whether a call may wait for the disk. */
enum site_patience { SITE_MAY_WAIT, SITE_CACHED_ONLY };

/* One form of a file: one allocation, which ends with its heads and, if it is in memory, its body.
 * Use the functions below. `size` and `marks` may be used as they are. */
struct site_file {
    uint64_t size;            /* of the file, bytes */
    uint64_t version;         /* private to site/: equal for equal identities on the disk */
    uint32_t last_modified_s; /* 0: none */
    uint32_t end_at;          /* where the heads end and a body begins, counted from here */
    uint16_t head_len, block_len;
    uint16_t etag_at;  /* in the head; 0: in front of all heads */
    uint16_t marks[3]; /* the caller's own offsets into the head */
    uint8_t etag_len;
    bool open; /* it begins a struct site_open_file, and no body is in memory */
};

/* A form that is kept open for reading while its entry lives. */
struct site_open_file {
    struct site_file file;       /* first */
    struct site_cache_link link; /* of the entry, at its first open form */
    int fd;
    int64_t modified_ns; /* mtime; since 1970 */
    int64_t changed_ns;  /* ctime of a file with a tag of its content, which its mtime does not
                            vouch for; else 0 */
    uint64_t end_hash;   /* of the last SITE_END_BYTES */
};

/* The bytes, or NULL when they are in the open file. */
static inline const char *site_file_body(const struct site_file *file)
{
    return file->open ? NULL : (const char *)file + file->end_at;
}

/* Ready-made bytes of the caller's (site_set_head), or empty. */
static inline struct span site_file_head(const struct site_file *file)
{
    return span_of((const char *)file + file->end_at - file->head_len, file->head_len);
}

/* The same in a second form (site_set_block), or empty. */
static inline struct span site_file_block(const struct site_file *file)
{
    return span_of((const char *)file + file->end_at - file->head_len - file->block_len,
                   file->block_len);
}

/* The entity tag, quoted and strong: of the content, or of size and mtime (enum site_etag). Empty
 * while nothing identifies the bytes reliably: they have not been read, or the file changed so
 * close to the load that another version could have the same times. */
static inline struct span site_file_etag(const struct site_file *file)
{
    const size_t at = file->etag_at > 0 ? file->end_at - file->head_len + file->etag_at
                      : file->open      ? sizeof(struct site_open_file)
                                        : sizeof(struct site_file);
    return span_of((const char *)file + at, file->etag_len);
}

/* The open file, or -1 when all bytes are in memory. */
static inline int site_file_fd(const struct site_file *file)
{
    return file->open ? ((const struct site_open_file *)file)->fd : -1;
}

/* Seconds for Last-Modified, never later than the load; -1 when there is none, or the mtime is no
 * date. */
static inline int64_t site_file_last_modified_s(const struct site_file *file)
{
    return file->last_modified_s > 0 ? (int64_t)file->last_modified_s : -1;
}

struct site_entry_rest; /* what few entries have */

/* The answer for a path. Reference-counted (cache.h): valid until the reader's next quiesce, or for
 * as long as it is held. After site_publish only the atomics change. */
struct site_entry {
    struct site_cache_entry cache;          /* first */
    _Atomic uint64_t checked_ns;            /* when it was last compared with the disk */
    struct site_file *plain;                /* the file itself. Other forms: site_entry_file */
    _Atomic(struct site_entry_rest *) rest; /* private to site/; usually NULL */
    uint16_t type;            /* media type: its number in the site's table (site_entry_type) */
    uint8_t variants;         /* bit 1 << enum site_variant: which forms there are */
    uint8_t made;             /* which of `variants` the server made itself */
    _Atomic uint8_t missing;  /* which the server could make, and no request has wanted yet */
    _Atomic uint8_t untagged; /* 1: an open file has no tag, and no request has wanted one yet */
    _Atomic bool noted;       /* the compressor has its file as a dictionary */
    bool has_markdown : 1;    /* page.md is beside page.html: site_entry_markdown */
    bool html_only : 1;       /* the caller's: the page is never sent in Markdown */
    bool guarded : 1;         /* the caller's: it checks each request before it sends the entry */
    bool no_transform : 1;    /* the caller's: its rules allow no forms but those on the disk */
    bool delta : 1;           /* its bytes are a difference from a dictionary (site/delta.h) */
    bool negotiable : 1;      /* it has or may get more than one variant, so the answer depends on
                                 Accept-Encoding */
    bool
        settled : 1; /* private: the last change of each file was at least a tick before the load */
    bool whole : 1;  /* private: it holds one version of its file */
};

/* A form other than the plain file, or NULL. */
struct site_file *site_entry_sibling(const struct site_entry *entry, int variant);

/* One of the `variants`; NULL for any other form. */
static inline struct site_file *site_entry_file(const struct site_entry *entry, int variant)
{
    return __builtin_expect(variant == SITE_PLAIN, 1) ? entry->plain
                                                      : site_entry_sibling(entry, variant);
}

/* The device of the site's root: whom to wait for. */
uint64_t site_entry_disk(const struct site_entry *entry);

/* The media type, as Content-Type's value. Valid as long as the site. */
struct span site_entry_type(const struct site_entry *entry);

/* The path of the same page in Markdown: of a page.html beside page.md. Else empty. */
struct span site_entry_markdown(const struct site_entry *entry);

/* The caller's mark: what else of a request the head depends on, or NULL. Set it before
 * site_publish. False: no memory, and the entry must not be published. */
const void *site_entry_rule(const struct site_entry *entry);
bool site_entry_set_rule(struct site_entry *entry, const void *rule);

/* Opens the folders that the options name. On failure returns -errno, and *ret_what is the path
 * that failed. Borrows `mime`, the options and what they point to for the lifetime of the site. */
MUST_USE int site_open(struct site **ret_site, const struct site_options *options,
                       const struct site_mime *mime, const char **ret_what);

/* Closes the site. No entry of it is in use or in a cache any more. */
void site_close(struct site *site);

/* Whether this process may enter the site's folder and, if it `lists` that folder, read its
 * names. */
bool site_can_read(const struct site *site, bool lists);
const struct site_options *site_options(const struct site *site);

/* What the options say. */
const struct site_view *site_view(const struct site *site);

/* How long an entry is used before it is compared with the disk again. Every request that comes
 * this long after a change sees it. While one thread compares, others still use the old entry. A
 * file that is kept open is checked with fstat at each hit, because its length will be
 * announced. */
#define SITE_FRESH_NS UINT64_C(500000000)

/* Finds the answer for `path` (decoded, normalised, begins with '/').
 *
 * A hit on a fresh entry makes no system call if the file is in memory, and one fstat for each
 * variant that is kept open. See cache.h for when it takes a lock. An entry that is not fresh is
 * compared with the disk first. It is replaced when the file, its siblings or the choice of the
 * index file has changed, and when the compressor has made a variant of it (compressor.h).
 *
 * On SITE_FILE, *ret_entry is in the cache (*ret_new false), or it is newly loaded and not yet
 * published (*ret_new true). In the second case the caller holds its only reference. The caller
 * gives each variant its head (site_set_head), then calls site_publish, and finally
 * site_cache_release. */
enum site_result site_find(const struct site *site, struct site_cache_reader *reader,
                           struct span path, uint64_t now_ns, struct site_entry **ret_entry,
                           bool *ret_new);

/* What site_find would find, if a fresh entry is in the cache. NULL: only site_find knows. */
struct site_entry *site_find_kept(const struct site *site, struct site_cache_reader *reader,
                                  struct span path, uint64_t now_ns);

/* The same for any lookup (site/query.h). With SITE_CACHED_ONLY it does not wait for the disk, and
 * SITE_NOT_IN_MEMORY has changed nothing.
 *
 * A listing follows after SITE_LISTING. A change of the directory's names is seen as one of a file
 * is. Sizes and times of its files may be older (SITE_LISTING_ENTRY_NS). */
struct site_query;
enum site_result site_find_query(const struct site *site, struct site_cache_reader *reader,
                                 struct site_query *query, uint64_t now_ns,
                                 enum site_patience patience, struct site_entry **ret_entry,
                                 bool *ret_new);

/* Copies ready-made bytes into an unpublished entry. If the body is in memory, they stand directly
 * before it (head.at + head.len == body), and their limit is SITE_HEAD_ROOM bytes, and twice the
 * options' fields_max. Returns false for a longer head, or without memory. The entry is then valid
 * without a head. */
enum { SITE_HEAD_ROOM = 1024 };
bool site_set_head(struct site_entry *entry, enum site_variant variant, struct span head);

/* Copies the head in a second form, after site_set_head. Only a variant whose body is in memory has
 * it, and only if both forms fit into the limit of the head. Otherwise nothing changes. */
void site_set_block(struct site_entry *entry, enum site_variant variant, struct span block);

/* Offers a new entry to the cache, after all heads are set. The entry may move: *entry is where it
 * is afterwards. The cache refuses an entry that is too large. A file that changed during every
 * attempt to read it is not offered. The caller keeps its reference, which is the only one before.
 * Returns whether the cache has taken the entry. */
bool site_publish(struct site_cache_reader *reader, struct site_entry **entry);

/* Reads `len` bytes at `offset` of a variant, open or in memory; 0 or -errno
 * (-ENODATA: the file is shorter). */
MUST_USE int site_file_read(const struct site_file *file, char *bytes, size_t len, uint64_t offset);

/* Whether the file behind an open variant still begins with the bytes that were measured, as far as
 * can be known. False when it was truncated or rewritten in place. True when it has only grown,
 * as a log does: the bytes at its old end are then the same. */
enum { SITE_END_BYTES = 1024 };
bool site_file_unchanged(const struct site_file *file);
