/* SPDX-License-Identifier: MIT
 *
 * What a site sees on its way to an answer, kept for somebody who asks why. The
 * looks at the disk are those of site_find and the like; this only writes down
 * what they found, and then goes along a path that led nowhere to say where it
 * ended. Sites that nobody traces pay for a pointer that is NULL, and only when
 * they go to the disk.
 */
#pragma once

#include "site/site.h"

#include <limits.h>

enum site_cause {
#define CAUSE(name, sentence) SITE_CAUSE_##name,
#include "site/cause.def"
#undef CAUSE
};

/* Behind the name of what it is about; static. */
struct span site_cause_sentence(enum site_cause cause);

/* What a look was for. */
enum site_purpose {
    SITE_LOOKUP_PATH,      /* what was asked for */
    SITE_LOOKUP_INDEX,     /* an index file of a directory that was asked for */
    SITE_LOOKUP_SIBLING,   /* a stored form of the file before it */
    SITE_LOOKUP_DIRECTORY, /* that no index file stands for */
    SITE_LOOKUP_FALLBACK,
    SITE_LOOKUP_ERROR_PAGE
};

struct site_step {
    enum site_purpose purpose;
    enum site_cause cause;
    int error; /* -errno, or 0 */
    uint64_t size;
    int64_t modified_ns;
    char path[PATH_MAX]; /* below the root, without a leading slash */
    size_t end;          /* of the part of `path` that the cause is about; its length: all */
    char target[256];    /* of a symbolic link that `path`, up to `end`, is; else empty */
};

enum { SITE_STEPS_MAX = 48 };

struct site_trace {
    unsigned count; /* of steps; those past the last one are only counted in `more` */
    unsigned more;
    struct site_step step[SITE_STEPS_MAX];
};

/* From now on the site writes down what it sees; NULL: no more. Borrows the trace until then.
 * For a site that one thread uses. */
void site_trace_begin(struct site *site, struct site_trace *trace);

/* ---- for the site itself ---- */

struct site_identity;

/* What the result of opening a name means; `error` is -errno, or 0. */
enum site_cause site_cause_of(enum site_result result, int error);

/* A name was opened, with this `cause` and `error`; `identity` is that of a file, else NULL. */
void site_trace_lookup(const struct site *site, int root_fd, enum site_purpose purpose,
                       const char *path, enum site_cause cause, int error,
                       const struct site_identity *identity);

/* The last look came to this. */
void site_trace_judge(const struct site *site, enum site_cause cause);

/* The path was not looked for: `name`, a part of it, is why. */
void site_trace_refuse(const struct site *site, struct span path, struct span name,
                       enum site_cause cause);
