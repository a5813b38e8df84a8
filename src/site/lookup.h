/* SPDX-License-Identifier: MIT
 *
 * What the disk holds for a path just now: the file and those of its siblings
 * (.br, .zst, .gz) that may stand for it, opened and measured. Private to site/.
 */
#pragma once

#include "site/site.h"

#include <limits.h>

struct stat;

struct site {
    const struct site_options *options;
    const struct site_mime *mime;
    int root_fd;
    int error_pages_fd;       /* -1 when there are none */
    struct span fallback;     /* options->fallback without leading slashes */
    struct site_trace *trace; /* NULL: nobody asks why */
    uint64_t seed;            /* of this site's keys: secret, and another for each site */
};

/* What tells one version of a file from another. */
struct site_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

struct site_lookup {
    int fd[SITE_VARIANTS]; /* -1: not there, or not usable */
    struct site_identity identity[SITE_VARIANTS];
    char path[PATH_MAX]; /* of the plain file, below the root, NUL at the end */
    size_t path_len;
    bool is_directory; /* a directory stands under `path`; nothing is open */
    int64_t began_ns;  /* by the wall clock, before anything was opened */
};

/* Looks at `path` as a request has it: decoded, beginning with '/'. Index files
 * are tried for one that ends with '/'. On SITE_FILE *ret_lookup holds open
 * descriptors (site_lookup_close); on anything else it means nothing. */
enum site_result site_lookup(const struct site *site, struct span path,
                             struct site_lookup *ret_lookup);

/* Looks at one file whose name the configuration gives, below `root_fd`. */
enum site_result site_lookup_file(const struct site *site, int root_fd, struct span path,
                                  struct site_lookup *ret_lookup);

/* Closes what the lookup still holds. */
void site_lookup_close(struct site_lookup *lookup);

/* The last component of the plain file's path; lives as long as the lookup. */
struct span site_lookup_name(const struct site_lookup *lookup);

/* Opens the directory `path` (as site_lookup has it, ending with '/') for reading.
 * A descriptor or -errno; -ENOENT too when it may not be known of. */
MUST_USE int site_open_directory(const struct site *site, struct span path);

struct site_identity site_identity_of(const struct stat *status);
bool site_identity_equal(const struct site_identity *a, const struct site_identity *b);

/* Whether a stored form may stand for the plain file: not empty, not older. */
bool site_sibling_fits(const struct site_identity *sibling, const struct site_identity *plain);
