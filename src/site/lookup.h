/* SPDX-License-Identifier: MIT
 *
 * The files on the disk for a path: the plain file and the siblings (.br, .zst, .gz) that can
 * stand for it, opened and measured. Private to site/.
 */
#pragma once

#include "os/file.h"
#include "site/absent.h"
#include "site/site.h"

#include <limits.h>
#include <stddef.h>

struct stat;

struct site_siblings;

struct site {
    struct site_cache_kind kind; /* of its entries, which find the site by it */
    const struct site_options *options;
    const struct site_mime *mime;
    int root_fd;
    uint64_t disk; /* the device of the root */
    int *pages_fd; /* of error pages: those of the site (-1: none), then error_folders */
    unsigned pages_count;
    enum os_file_medium root_medium;
    enum os_file_medium pages_medium; /* of all folders of error pages: the one that waits most */
    struct site_view view;            /* of the options; the fallback without leading slashes */
    struct site_absent *absent;
    struct site_siblings *siblings; /* NULL: siblings are not looked for */
    struct site_trace *trace;       /* NULL: this site is not traced */
    uint64_t seed; /* for the hashes of keys; secret, and different for each site */
};

/* The site of an entry. */
static inline const struct site *site_of(const struct site_entry *entry)
{
    return (const struct site *)(const void *)((const char *)entry->cache.kind -
                                               offsetof(struct site, kind));
}

/* The identity of one version of a file. */
struct site_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

struct site_lookup {
    int fd[SITE_VARIANTS]; /* -1: not there, or unusable */
    struct site_identity identity[SITE_VARIANTS];
    char path[PATH_MAX]; /* of the plain file, below the root, NUL at the end */
    size_t path_len;
    bool is_directory;           /* a directory stands under `path`; nothing is open */
    bool markdown;               /* the file is a page.html, and page.md is beside it */
    enum site_patience patience; /* also for loading it */
    int64_t began_ns;            /* by the wall clock, before anything was opened */
    /* The caller of site_lookup and site_lookup_file sets it to the present time, or to 0 if no
     * request uses the answer: it becomes the time of a folder's names. After the lookup, it says
     * since when the answer is known. That is earlier by up to SITE_FRESH_NS if siblings were not
     * tried (siblings.h). */
    uint64_t checked_ns;
};

/* With SITE_CACHED_ONLY these three calls return SITE_NOT_IN_MEMORY where they would wait. */

/* Looks up the path of a request: decoded, beginning with '/'. If it ends with '/', the index files
 * of the view are tried. On SITE_FILE *ret_lookup holds open descriptors, which site_lookup_close
 * closes. With any other result it is undefined. */
enum site_result site_lookup(const struct site *site, const struct site_view *view,
                             struct span path, enum site_patience patience,
                             struct site_lookup *ret_lookup);

/* Looks up a file that the configuration names, below `root_fd`. Sets `is_directory` in any
 * case. */
enum site_result site_lookup_file(const struct site *site, int root_fd, struct span path,
                                  enum site_patience patience, struct site_lookup *ret_lookup);

/* Opens and measures a directory, which is then the plain variant. `path` is that of a request, and
 * ends with '/'. */
enum site_result site_lookup_directory(const struct site *site, const struct site_view *view,
                                       struct span path, enum site_patience patience,
                                       struct site_lookup *ret_lookup);

/* Whether site_lookup and site_lookup_file are certain to return SITE_ABSENT for `path`
 * now. It takes one system call, which is cheaper than a lookup and needs no descriptor. When it
 * is not certain, only a lookup knows. */
bool site_lookup_is_absent(const struct site *site, const struct site_view *view, int root_fd,
                           struct span path, enum site_patience patience);

/* The path of a request for the same page in Markdown; empty without lookup->markdown. */
enum { SITE_LOOKUP_MARKDOWN_MAX = PATH_MAX + 4 };
struct span site_lookup_markdown_path(const struct site_lookup *lookup,
                                      char out[SITE_LOOKUP_MARKDOWN_MAX]);

/* Whether a file of this name in the root has rules of the site, also in a stored form, and is not
 * served. */
bool site_lookup_has_rules(const struct site *site, struct span name);

/* Closes the descriptors that the lookup still holds. */
void site_lookup_close(struct site_lookup *lookup);

/* The last component of the plain file's path; valid as long as the lookup. */
struct span site_lookup_name(const struct site_lookup *lookup);

struct site_identity site_lookup_identity_of(const struct stat *status);
bool site_lookup_identity_equal(const struct site_identity *a, const struct site_identity *b);

/* The identity in 64 bits, for an entry to keep: a hash with the secret of the site. */
uint64_t site_lookup_version(const struct site *site, const struct site_identity *identity);

/* Whether a sibling can stand for the plain file: it is not empty, and not older. */
bool site_lookup_sibling_fits(const struct site_identity *sibling,
                              const struct site_identity *plain);
