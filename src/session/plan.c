/* SPDX-License-Identifier: MIT */
#include "session/plan.h"

#include "http/accept.h"
#include "http/list.h"
#include "session/delta.h"
#include "session/fetch.h"
#include "session/guard.h"
#include "session/head.h"
#include "session/hosts.h"
#include "session/limits.h"
#include "session/listing.h"
#include "session/markdown.h"
#include "session/pending.h"
#include "session/rules.h"
#include "session/scheme.h"
#include "session/tally.h"
#include "session/trace.h"

/* The weight that Accept gives a media type, 0 to 1000. */
static int accept_weight(const struct session_exchange *x, struct span type)
{
    char storage[SESSION_LIST_MAX];
    struct span accept =
        http_request_list(x->request, x->head, HTTP_FIELD_ACCEPT, storage, sizeof(storage));
    return http_accept_weight(http_request_has(x->request, HTTP_FIELD_ACCEPT), accept, type);
}

static void answer_and_close(struct session_exchange *x, enum http_status status)
{
    session_answer_is_last(x);
    session_answer_status(x, status);
}

/* ---- the path ---- */

/* Whether a person probably navigates to the path. Only then the fallback page is sent: for a
 * missing script or image a 404 is more useful. */
static bool navigates(struct session_exchange *x)
{
    struct span path = x->target.path;
    size_t at = path.len;
    while (at > 0 && path.at[at - 1] != '/')
        at--;
    if (!memchr(path.at + at, '.', path.len - at))
        return true;
    x->by_accept = true;
    return accept_weight(x, SPAN("text/html")) > accept_weight(x, SPAN("application/octet-stream"));
}

/* Answers with an entry whose heads are prepared. `published`: the cache was offered it if it is
 * fresh. */
static void answer_published(struct session_exchange *x, struct site_entry *entry, bool fresh,
                             enum session_publication published)
{
    if (session_trace_of(x->thread))
        session_trace_entry(x, entry, published != SESSION_HEADLESS);
    x->cache = fresh ? LOG_CACHE_MISS : LOG_CACHE_HIT;
    if (__builtin_expect(x->resumed != NULL, 0) && x->resumed->cache != LOG_CACHE_NONE)
        x->cache = x->resumed->cache;
    else
        stats_writer_add(&x->thread->stats, fresh ? STATS_cache_misses : STATS_cache_hits, 1);
    session_answer_entry(x, entry, fresh);
}

static void answer_found(struct session_exchange *x, struct site_entry *entry, bool fresh)
{
    const enum session_publication published = fresh ? session_head_publish(x, &entry)
                                                     : SESSION_PUBLISHED;
    answer_published(x, entry, fresh, published);
}

/* Whether the page is sent in Markdown if the site has that. The mark of a new entry is not set
 * yet. */
static bool prefers_markdown(const struct session_exchange *x, const struct site_entry *entry,
                             bool fresh)
{
    const bool html_only = fresh && x->match ? x->match->markdown == RULES_OFF : entry->html_only;
    return entry->has_markdown && !html_only && session_markdown_is_preferred(x);
}

/* Answers with a file of a path with dictionaries, or with its difference from one. */
static void answer_with_dictionary(struct session_exchange *x, struct site_entry *entry, bool fresh)
{
    const bool is_delta = session_delta_choose(x, &entry, &fresh);
    const enum session_publication published = session_delta_publish(x, &entry, fresh);
    answer_published(x, entry, fresh, published);
    stats_writer_add(&x->thread->stats, STATS_delta_answers, is_delta && !x->pending);
}

/* Answers with a file, or with its page in Markdown if the client prefers that. */
static void answer_form(struct session_exchange *x, struct site_entry *entry, bool fresh)
{
    const struct rules_match *const known = x->match;
    struct rules_match match;
    struct site_entry *page;
    bool page_fresh;
    if (!prefers_markdown(x, entry, fresh)) {
        if (known && known->dictionary)
            answer_with_dictionary(x, entry, fresh);
        else
            answer_found(x, entry, fresh);
        return;
    }
    if (!known && x->site->rules) {
        rules_find(x->site->rules, x->target.path, &match);
        x->match = &match;
    }
    const bool found = session_markdown_find(x, entry, x->match, &page, &page_fresh);
    session_trace_note(x, markdown, found);
    if (found)
        answer_found(x, page, page_fresh);
    else if (!x->pending)
        answer_found(x, entry, fresh);
    if ((found || x->pending) && fresh) {
        (void)session_head_publish(x, &entry);
        site_cache_release(&entry->cache);
    }
    x->match = known;
}

static void answer_without_file(struct session_exchange *x, enum site_result result)
{
    session_answer_status(x, result == SITE_FORBIDDEN ? HTTP_FORBIDDEN
                             : result == SITE_BUSY    ? HTTP_SERVICE_UNAVAILABLE
                                                      : HTTP_INTERNAL_SERVER_ERROR);
}

/* Answers where the lookup of a file that stands for another one has failed, so that nobody knows
 * whether it is there. */
static bool answer_failed_lookup(struct session_exchange *x, enum site_result result)
{
    if (result != SITE_BUSY && result != SITE_BROKEN)
        return false;
    session_trace_note(x, place_failed, true);
    answer_without_file(x, result);
    return true;
}

/* Answers with what a rule puts in the place of a file that is not there. False: there is no such
 * rule, or its file is not there, either. */
static bool answer_in_place(struct session_exchange *x)
{
    struct site_entry *entry;
    bool fresh;
    if (!x->match)
        return false;
    if (session_rules_answer_absent(x))
        return true;
    const enum site_result result = session_rules_find_absent(x, &entry, &fresh);
    if (result != SITE_FILE)
        return answer_failed_lookup(x, result);
    answer_form(x, entry, fresh);
    return true;
}

static void answer_absent(struct session_exchange *x)
{
    struct site_entry *entry;
    bool fresh;
    struct site_view storage;
    if (answer_in_place(x))
        return;
    bool wanted = session_rules_view(x, &storage)->fallback && navigates(x);
    session_trace_note(x, navigates, wanted);
    const enum site_result result = wanted ? session_rules_find_fallback(x, &entry, &fresh)
                                           : SITE_ABSENT;
    if (result == SITE_FILE) {
        session_trace_note(x, fallback, true);
        answer_found(x, entry, fresh);
    } else if (!answer_failed_lookup(x, result)) {
        session_answer_status(x, HTTP_NOT_FOUND);
    }
}

/* Answers for a folder without an index file that is not listed. */
static void answer_closed_folder(struct session_exchange *x)
{
    if (!answer_in_place(x))
        session_answer_status(x, HTTP_FORBIDDEN);
}

static void answer_with_listing(struct session_exchange *x, enum site_listing_form form)
{
    struct session_listing listing;
    const enum site_result result = session_listing_find(x, form, &listing);
    session_trace_note(x, listing, result);
    if (result == SITE_FILE) {
        answer_published(x, listing.entry, listing.fresh, listing.published);
        session_listing_answered(x, &listing);
    } else if (result == SITE_ABSENT) {
        answer_absent(x);
    } else {
        answer_without_file(x, result);
    }
}

static void answer_listing(struct session_exchange *x)
{
    const bool json = accept_weight(x, SPAN("application/json")) >
                      accept_weight(x, SPAN("text/html"));
    const enum site_listing_form form = json ? SITE_LISTING_JSON : SITE_LISTING_HTML;
    if (x->match && x->match->listing == RULES_OFF) {
        answer_closed_folder(x);
        return;
    }
    x->by_accept = true;
    session_trace_note(x, listing_json, json);
    if (session_head_only(x) && !session_answer_is_conditional(x))
        session_answer_listing_head(x, site_listing_type(form));
    else
        answer_with_listing(x, form);
}

static inline enum site_result find_path(struct session_exchange *x, struct site_entry **ret_entry,
                                         bool *ret_fresh)
{
    struct session_turn *turn = &x->thread->turn;
    if (session_turn_has(turn, x->site, x->target.path))
        return SITE_ABSENT;
    struct site_query query = { .path = x->target.path, .key = x->target.path };
    const enum site_result result = session_fetch_find(x, &query, ret_entry, ret_fresh);
    /* What a request has waited for was found before this turn. */
    if (__builtin_expect(result == SITE_ABSENT && !x->resumed, 0))
        session_turn_note(turn, x->site, x->target.path);
    return result;
}

static void answer_absence(struct session_exchange *x, enum site_result result)
{
    switch (result) {
    case SITE_REDIRECT:
        session_answer_redirect(x);
        return;
    case SITE_LISTING:
        answer_listing(x);
        return;
    case SITE_ABSENT:
        answer_absent(x);
        return;
    case SITE_FILE:
    case SITE_FORBIDDEN:
        if (span_ends(x->target.path, SPAN("/")))
            answer_closed_folder(x);
        else
            answer_without_file(x, result);
        return;
    case SITE_BUSY:
    case SITE_BROKEN:
    case SITE_NOT_IN_MEMORY:
        answer_without_file(x, result);
        return;
    }
}

/* Answers with what the site has for the path. */
static void plan_file(struct session_exchange *x)
{
    struct site_entry *entry;
    bool fresh;
    const enum site_result result = find_path(x, &entry, &fresh);
    session_trace_note(x, looked, true);
    session_trace_note(x, result, result);
    if (__builtin_expect(result == SITE_FILE, 1))
        answer_found(x, entry, fresh);
    else
        answer_absence(x, result);
}

/* The same in a site with rules, or with pages in Markdown. */
static void plan_file_apart(struct session_exchange *x)
{
    struct site_entry *entry;
    bool fresh;
    const enum site_result result = x->match ? session_rules_find(x, &entry, &fresh)
                                             : find_path(x, &entry, &fresh);
    session_trace_note(x, looked, true);
    session_trace_note(x, result, result);
    if (result == SITE_FILE)
        answer_form(x, entry, fresh);
    else
        answer_absence(x, result);
}

/* An entry is in the cache under a path only if no rule acts on the file of that path, and its head
 * has the fields of the rules. So the answer from the cache does not need the rules, unless they
 * guard it. */
static void plan_by_rules(struct session_exchange *x)
{
    struct rules_match match;
    struct site_entry *kept = session_guard_kept(x);
    if (kept && !kept->guarded) {
        x->origin_line = session_rules_origin_line(x, site_entry_rule(kept));
        answer_form(x, kept, false);
        return;
    }
    if (session_rules_answer_at_once(x))
        return;
    rules_find(x->site->rules, x->target.path, &match);
    match.is_private = session_rules_are_private(x);
    session_trace_note(x, ruled, true);
    session_trace_note(x, match, match);
    x->match = &match;
    x->origin_line = session_rules_origin_line(x, match.cors);
    if (!session_rules_answer(x))
        plan_file_apart(x);
    x->match = NULL;
}

static void plan_path(struct session_exchange *x)
{
    if (__builtin_expect(x->site->rules != NULL, 0))
        plan_by_rules(x);
    else if (__builtin_expect(x->site->markdown, 0))
        plan_file_apart(x);
    else
        plan_file(x);
}

/* ---- the request ---- */

static __attribute__((noinline)) bool read_expectations(const struct http_request *request,
                                                        const char *head, bool *ret_unknown)
{
    struct span value, expectation;
    size_t cursor = 0;
    bool expects = false;
    while (http_request_next_value(request, head, HTTP_FIELD_EXPECT, &cursor, &value))
        while (http_list_next(&value, &expectation))
            if (span_equal_nocase(expectation, SPAN("100-continue")))
                expects = true;
            else
                *ret_unknown = true;
    return expects;
}

/* Whether the client waits for a 100 before it sends the body. The server sends no 100. It needs
 * no body, so the final answer comes at once (RFC 9110 section 10.1.1). */
static inline bool expects_continue(const struct http_request *request, const char *head,
                                    bool *ret_unknown)
{
    *ret_unknown = false;
    return request->minor > 0 && http_request_has(request, HTTP_FIELD_EXPECT) &&
           read_expectations(request, head, ret_unknown);
}

static void plan_method(struct session_exchange *x)
{
    switch ((enum http_method)x->request->method) {
    case HTTP_GET:
    case HTTP_HEAD:
        plan_path(x);
        return;
    case HTTP_OPTIONS:
        session_answer_options(x);
        return;
    case HTTP_METHOD_KNOWN:
        session_answer_status(x, HTTP_METHOD_NOT_ALLOWED);
        return;
    case HTTP_METHOD_UNKNOWN:
        session_answer_status(x, HTTP_NOT_IMPLEMENTED);
        return;
    }
}

bool session_plan_waits(const struct http_request *request, const char *head,
                        struct http_body *ret_body)
{
    bool unknown_expectation;
    if (__builtin_expect(!http_request_has(request, HTTP_FIELD_TRANSFER_ENCODING), 1))
        return false;
    if (expects_continue(request, head, &unknown_expectation) || unknown_expectation)
        return false;
    return http_body_begin(ret_body, request, head) == 0;
}

/* Whether the server closes the connection after this answer. */
static bool is_last_answer(const struct session_exchange *x)
{
    const struct session *s = x->session;
    const struct session_shared *shared = x->thread->shared;
    if (atomic_load_explicit(&shared->draining, memory_order_relaxed))
        return true;
    if (__builtin_expect(
            s->answers + 1 != shared->connection_requests && x->thread->now_ns < s->retires_ns, 1))
        return false;
    stats_writer_add(&x->thread->stats, STATS_connections_retired, !x->fetches);
    return true;
}

/* Whether the client's address has used up its requests of this moment. */
static bool is_too_many(struct session_exchange *x)
{
    const struct session_peer *peer = session_answer_client(x);
    if (x->resumed)
        return x->resumed->limited;
    if (__builtin_expect(!peer->limited, 1) ||
        session_limits_take_request(x->thread->shared->limits, peer, x->thread->now_ns))
        return false;
    stats_writer_add(&x->thread->stats, STATS_requests_limited, 1);
    x->limited = true;
    return true;
}

/* The status of a request that no site answers, or 0. `target`: the result of its resolution. */
static int refusal_of(struct session_exchange *x, int target, bool unknown_expectation)
{
    if (is_too_many(x))
        return HTTP_TOO_MANY_REQUESTS;
    if (unknown_expectation)
        return HTTP_EXPECTATION_FAILED;
    if (!x->site)
        return HTTP_MISDIRECTED_REQUEST;
    return target == HTTP_NOT_FOUND ? HTTP_NOT_FOUND : 0;
}

/* Decides whether the connection ends with the answer, and sets *ret_body if it does not.
 * `expects`: the client waits before it sends the body. */
static void plan_end(struct session_exchange *x, const struct http_body *body, bool expects,
                     struct http_body *ret_body)
{
    const bool has_body = body->kind != HTTP_BODY_NONE;
    x->close = !http_request_persists(x->request, x->head);
    if (!x->close && !x->framing && is_last_answer(x))
        session_answer_is_last(x); /* the client may already have sent its next request */
    if (!x->close && !(has_body && expects))
        *ret_body = *body;
    else if (has_body)
        session_answer_is_last(x);
}

/* A request that has waited for its error page is planned again, and is counted already. */
static void note_fault(struct session_exchange *x, enum http_fault fault)
{
    if (__builtin_expect(fault == HTTP_FAULT_NONE, 1))
        return;
    if (x->resumed)
        x->thread->fault = fault;
    else
        session_tally_fault(x->thread, fault);
}

static void plan_answer(struct session_exchange *x)
{
    if (__builtin_expect(x->site->https_port == 0 && !x->session->tls_wanted, 1) ||
        !session_scheme_answers(x))
        plan_method(x);
}

void session_plan(struct session_exchange *x, struct http_body *ret_body)
{
    *ret_body = (struct http_body){ .kind = HTTP_BODY_NONE };
    struct http_body body;
    int status = http_body_begin(&body, x->request, x->head);
    if (status != 0) {
        note_fault(x, (enum http_fault)body.fault);
        answer_and_close(x, (enum http_status)status);
        return;
    }
    if (x->body_read)
        body.kind = HTTP_BODY_NONE;
    char storage[HTTP_TARGET_MAX];
    status = http_target_resolve(&x->target, x->request, x->head, storage, sizeof(storage));
    note_fault(x, (enum http_fault)x->target.fault);
    if (status == HTTP_BAD_REQUEST) {
        answer_and_close(x, HTTP_BAD_REQUEST);
        return;
    }
    bool unknown_expectation;
    const bool expects = expects_continue(x->request, x->head, &unknown_expectation);
    x->site = session_hosts_find(x->thread->shared->hosts, x->target.host);
    session_trace_note(x, unknown_expectation, unknown_expectation);
    if (session_trace_of(x->thread))
        session_trace_target(x);
    const int refusal = refusal_of(x, status, unknown_expectation);
    enum session_access_verdict access = SESSION_ACCESS_OPEN;
    if (x->site && __builtin_expect(x->site->access != NULL, 0))
        access = session_guard_decide(x, refusal != 0);
    if (access == SESSION_ACCESS_PENDING)
        return;
    plan_end(x, &body, expects || unknown_expectation, ret_body);
    if (refusal != 0)
        session_answer_status(x, (enum http_status)refusal);
    else if (access == SESSION_ACCESS_OPEN || x->admitted)
        plan_answer(x);
    else
        session_access_refuse(x, access);
}
