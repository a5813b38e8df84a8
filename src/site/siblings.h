/* SPDX-License-Identifier: MIT
 *
 * Which names of a folder end like a stored form (.br, .zst, .gz) or like a page in Markdown (.md).
 * With that, a lookup opens only siblings that exist: a miss in a folder without stored forms makes
 * three system calls less.
 *
 * The names are a hint. A name that is remembered is opened and measured as ever. A name that is
 * missing here is not tried, so the memory of a folder must never lack a name for long:
 * - A folder is compared with the disk after SITE_FRESH_NS: one call for all of its files.
 * - The names of a folder that changed within the tick of its time are not used.
 * - Only filesystems that date each change of a folder, by the clock of this machine, count
 *   (os_file_dates_folders).
 *
 * A folder is read after some misses in it, and the number of names that one reading may cost
 * follows from the number of misses. So reading costs less than the calls that it saves, and
 * folders with very many names are never remembered. Private to site/.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct site_siblings;

/* What a lookup asks. */
struct site_siblings_query {
    int root_fd;
    const char *path; /* of the plain file, below the root, with a NUL */
    size_t path_len;
    size_t stem_len; /* of the page without its ending; 0: it has no form in Markdown */
    uint64_t now_ns;
    bool may_read; /* the caller may wait until a folder is read */
};

/* Sets of forms: bits 1 << enum site_variant, where the plain file's bit is that of Markdown. */
enum {
    SITE_SIBLINGS_ALL = 15,    /* any may be there: nothing is known */
    SITE_SIBLINGS_UNREAD = 16, /* the same. The folder is to be read now, and this caller may not */
};

/* Most bytes of memory for names, for all folders of a site. */
#define SITE_SIBLINGS_BYTES ((size_t)1 << 20)

/* NULL without memory. `seed` is secret. */
struct site_siblings *site_siblings_new(uint64_t seed);
void site_siblings_free(struct site_siblings *siblings); /* accepts NULL */

/* The forms that may be beside a file. All others were not there at *ret_checked_ns, which is
 * query->now_ns or up to SITE_FRESH_NS before it. Accepts NULL, and then knows nothing. Any
 * thread: no thread waits for another one. */
unsigned site_siblings_likely(struct site_siblings *siblings,
                              const struct site_siblings_query *query, uint64_t *ret_checked_ns);
