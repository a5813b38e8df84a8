/* SPDX-License-Identifier: MIT The lookups of a site on its way to an answer, recorded for `weir
 * trace`. The lookups are those of site_find. This file only records them, and follows a path
 * that led nowhere to show where it ended. A site that is not traced tests one pointer for NULL,
 * and only when it goes to the disk. */
#pragma once

#include "site/site.h"

#include <limits.h>

enum site_cause {
#define CAUSE(name, sentence) SITE_CAUSE_##name,
#include "site/cause.def"
#undef CAUSE
};

/* The rest of a sentence that begins with the name in question. Static. */
struct span site_trace_cause_sentence(enum site_cause cause);

/* The purpose of a lookup. */
enum site_purpose {
    SITE_LOOKUP_PATH,      /* the path of the request */
    SITE_LOOKUP_INDEX,     /* an index file of the requested directory */
    SITE_LOOKUP_SIBLING,   /* a stored form of the file in the step before */
    SITE_LOOKUP_MARKDOWN,  /* the page of a step before in Markdown */
    SITE_LOOKUP_DIRECTORY, /* a directory without an index file */
    SITE_LOOKUP_FALLBACK,
    SITE_LOOKUP_ERROR_PAGE
};

struct site_step {
    enum site_purpose purpose;
    enum site_cause cause;
    int error; /* -errno, or 0 */
    uint64_t size;
    int64_t modified_ns;
    uint64_t version;    /* of a file: that of the form which is loaded from it */
    char path[PATH_MAX]; /* below the root, without a leading slash */
    size_t end;          /* length of the part of `path` that the cause is about */
    char target[256];    /* of the symbolic link at `path` up to `end`; else empty */
};

enum { SITE_STEPS_MAX = 48 };

struct site_trace {
    unsigned count; /* of steps; further ones are only counted in `more` */
    unsigned more;
    struct site_step step[SITE_STEPS_MAX];
};

/* Begins recording; NULL ends it. The trace is borrowed until then. For a site that only one thread
 * uses. */
void site_trace_begin(struct site *site, struct site_trace *trace);

/* ---- for the site itself ---- */

struct site_identity;

/* What the result of opening a name means; `error` is -errno, or 0. */
enum site_cause site_trace_cause_of(enum site_result result, int error);

/* A name was opened, with this `cause` and `error`; `identity` is that of a file, else NULL. */
void site_trace_lookup(const struct site *site, int root_fd, enum site_purpose purpose,
                       const char *path, enum site_cause cause, int error,
                       const struct site_identity *identity);

/* Replaces the cause of the last step. */
void site_trace_judge(const struct site *site, enum site_cause cause);

/* Records that the path was refused without a lookup, because of `name`, a part of it. */
void site_trace_refuse(const struct site *site, struct span path, struct span name,
                       enum site_cause cause);
