/* SPDX-License-Identifier: MIT
 *
 * The decisions on the way from a request to its answer, for `weir trace`. The code that answers
 * writes them down. A thread that is not traced has a NULL pointer, and its requests only test
 * that pointer.
 */
#pragma once

#include "http/accept.h"
#include "http/fault.h"
#include "http/precondition.h"
#include "http/range.h"
#include "http/request.h"
#include "http/target.h"
#include "rules/rules.h"
#include "session/access.h"
#include "session/thread.h"
#include "site/trace.h"

struct session_exchange;

/* The decisions on one request. A member is zero until its decision is made. */
struct session_trace {
    enum http_fault fault;       /* why it was refused */
    struct http_request request; /* zero until it is read */
    struct http_target target;   /* its spans point into `text`; zero until it is resolved */
    bool resolved;
    bool unknown_expectation;
    const struct session_site *site; /* NULL: no site has the host */
    struct span rule; /* the host name that matched; "*" for the site without names */

    enum session_access_verdict access; /* whether a password was needed, and right */
    bool scheme_named, secure;          /* a proxy names the scheme; it is https */
    const struct rules_rule *keeper;    /* the rule that needs it; NULL: none does */
    bool to_https;                      /* the answer is a redirect to https */
    bool ruled;                         /* the site has rules, and `match` has those of the path */
    struct rules_match match;           /* its captures are not kept */
    bool denied;                        /* a rule does not admit the client */
    bool target_refused;      /* the client may not have the path that a rewrite leads to */
    bool substituted;         /* no file answers, and a rule acts in its place */
    bool place_failed;        /* the lookup of the file in its place has failed */
    bool looked;              /* the path was looked up */
    enum site_result result;  /* the result of the lookup */
    struct site_trace steps;  /* what the lookup did on the disk */
    bool markdown;            /* the page in Markdown is sent */
    bool navigates;           /* for a fallback: a person probably navigates */
    bool listing_json;        /* the listing is JSON */
    enum site_result listing; /* SITE_FILE: it is rendered */

    struct site_entry *entry; /* the entry that was sent; holds a reference; NULL: no file */
    bool fallback;            /* the entry is the site's fallback */
    bool headless;            /* the entry has no prepared head */
    enum site_cache_verdict cache;
    enum http_coding coding; /* of the variant that was chosen */
    bool no_transform;       /* a rule forbids variants that the server makes */
    unsigned wanted;         /* the variant that the compressor would be asked to make: a bit
                                1 << enum site_variant, or 0 */

    bool conditional; /* conditions were evaluated */
    enum http_precondition precondition;
    bool ranged; /* a range was evaluated */
    enum http_range_result range;
    struct http_ranges ranges;      /* when it is satisfiable */
    bool own_page;                  /* the error page is the site's own */
    bool page_of_path;              /* and it is from the folder of `pages` */
    const struct rules_rule *pages; /* the first lookup of the page was in its folder; NULL: in that
                                       of the site */
    bool hinted;                    /* links for early hints were looked for */
    unsigned hints;                 /* links that were sent with 103 */

    char text[2 * HTTP_TARGET_MAX + 512];
};

/* From now on the thread writes its decisions to `trace`, one request at a time. Its sites do
 * the same, so no other thread may use them. Borrows the trace until a call with NULL, which
 * ends it. */
void session_trace_begin(struct session_thread *thread, struct session_trace *trace);

/* As session_feed, for a traced request that has arrived over TLS and is decrypted already.
 * `http2`: the handshake has agreed on HTTP/2. The session is new, and its origin is not for TLS.
 * Its output is plain. */
unsigned session_trace_feed_decrypted(struct session *s, struct span in, bool http2,
                                      uint64_t now_ns);

/* Releases the entry that the trace holds. */
void session_trace_done(struct session_trace *trace);

/* ---- for the session itself ---- */

/* The trace, or NULL. NULL is the usual case. */
static inline struct session_trace *session_trace_of(const struct session_thread *thread)
{
    return __builtin_expect(thread->trace != NULL, 0) ? thread->trace : NULL;
}

/* Notes a decision: session_trace_note(x, ranged, true). */
#define session_trace_note(x, member, value) \
    do { \
        if (__builtin_expect((x)->thread->trace != NULL, 0)) \
            (x)->thread->trace->member = (value); \
    } while (0)

/* Notes the target and the site. */
void session_trace_target(const struct session_exchange *x);

/* Notes the entry that is about to be sent. `whole`: it has its prepared head. */
void session_trace_entry(const struct session_exchange *x, struct site_entry *entry, bool whole);
