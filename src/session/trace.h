/* SPDX-License-Identifier: MIT
 *
 * How a request came to its answer, written down by the code that answers it, for
 * somebody who asks why (`weir trace`). A thread that nobody traces has a NULL
 * pointer in its place, which is all that its requests look at.
 */
#pragma once

#include "http/accept.h"
#include "http/fault.h"
#include "http/precondition.h"
#include "http/range.h"
#include "http/request.h"
#include "http/target.h"
#include "session/thread.h"
#include "site/trace.h"

struct session_exchange;

/* What was decided of one request; everything is zero until it is. */
struct session_trace {
    enum http_fault fault;       /* why it was refused as such */
    struct http_request request; /* zero until it was read */
    struct http_target target;   /* its spans lie in `text`; zero until it is resolved */
    bool resolved;
    bool unknown_expectation;
    const struct session_site *site; /* NULL: none answers for the host */
    struct span rule;                /* the host name that decided; "*" for the site of all */

    bool looked;             /* the site was asked for the path */
    enum site_result result; /* and said so */
    struct site_trace steps; /* on the disk */
    bool navigates;          /* for a fallback: the request looks like a person's */
    bool listing_json;       /* a listing, in this form */
    int listing_error;       /* that it came to; 0 or -errno */

    struct site_entry *entry; /* what was sent, held; NULL: no file */
    bool fallback;            /* it is the site's fallback */
    bool headless;            /* it did not get its ready-made head */
    enum site_cache_verdict cache;
    enum http_coding coding; /* the form of it that was chosen */

    bool conditional; /* conditions or a range were looked at */
    enum http_precondition precondition;
    bool ranged; /* a range was looked at */
    enum http_range_result range;
    struct http_ranges ranges; /* when it is satisfiable */
    bool own_page;             /* the error page is the site's own */

    char text[2 * HTTP_TARGET_MAX + 512];
};

/* The thread's requests are written to `trace` from now on, one at a time; NULL: no more. The
 * sites of the thread too; it is the only one that uses them. Borrows the trace until then. */
void session_trace_begin(struct session_thread *thread, struct session_trace *trace);

/* Lets go of what it holds. */
void session_trace_done(struct session_trace *trace);

/* ---- for the session itself ---- */

/* NULL, mostly. */
static inline struct session_trace *session_trace_of(const struct session_thread *thread)
{
    return __builtin_expect(thread->trace != NULL, 0) ? thread->trace : NULL;
}

/* Notes what was decided: session_trace_note(x, ranged, true). */
#define session_trace_note(x, member, value) \
    do { \
        if (__builtin_expect((x)->thread->trace != NULL, 0)) \
            (x)->thread->trace->member = (value); \
    } while (0)

/* The target is resolved, and the site is known. */
void session_trace_target(const struct session_exchange *x);

/* An entry is about to be sent; with its head, or not (`whole`). */
void session_trace_entry(const struct session_exchange *x, struct site_entry *entry, bool whole);
