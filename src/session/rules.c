/* SPDX-License-Identifier: MIT */
#include "session/rules.h"

#include "base/duration.h"
#include "base/num.h"
#include "session/fetch.h"
#include "session/guard.h"
#include "session/head.h"
#include "session/limits.h"
#include "session/pending.h"
#include "session/ready.h"
#include "session/trace.h"

enum { LOCATION_MAX = SESSION_ANSWER_ROOM / 4, REWRITTEN_MAX = HTTP_TARGET_MAX + RULES_TARGET_MAX };

void session_rules_add_fields(const struct session_exchange *x, bool is_error, struct buf *head)
{
    struct rules_match found;
    if (!x->site || !x->site->rules)
        return;
    if (!x->match) {
        rules_find(x->site->rules, session_rules_covered_path(x), &found);
        found.is_private = session_rules_are_private(x);
    }
    const struct rules_match *match = x->match ? x->match : &found;
    rules_add_fields(x->site->rules, match, is_error, head);
    if (x->request && x->origin_line.len == 0)
        buf_add(head, session_rules_origin_line(x, match->cors));
}

const struct rules_rule *session_rules_pages(const struct session_exchange *x)
{
    struct rules_match found;
    if (x->match)
        return x->match->pages;
    rules_find(x->site->rules, session_rules_covered_path(x), &found);
    return found.pages;
}

bool session_rules_mark(const struct session_exchange *x, struct site_entry *entry)
{
    const struct rules_rule *cors = x->match->cors;
    entry->guarded = rules_match_is_guarded(x->match) || session_rules_are_private(x);
    entry->html_only = x->match->markdown == RULES_OFF;
    return site_entry_set_rule(entry, cors && cors->origin_count > 0 ? cors : NULL);
}

bool session_rules_resolve(struct session_exchange *x, struct rules_match *match)
{
    if (!x->site || !x->site->rules)
        return false;
    rules_find(x->site->rules, session_rules_covered_path(x), match);
    match->is_private = session_rules_are_private(x);
    x->match = match;
    x->origin_line = session_rules_origin_line(x, match->cors);
    return true;
}

/* The ready-made answers of this rule, if they are those for the rules in x->match; or NULL. */
static const struct session_ready *find_ready(const struct session_exchange *x,
                                              const struct rules_rule *rule)
{
    if (!x->site->ready || x->match->is_private)
        return NULL;
    const struct session_ready *ready =
        &x->site->ready->each[session_ready_place(x->site->rules, rule)];
    return session_ready_fits(ready, x->match) ? ready : NULL;
}

bool session_rules_answer_preflight(struct session_exchange *x)
{
    const struct rules_rule *cors = x->match->cors;
    const struct session_ready *ready = cors ? find_ready(x, cors) : NULL;
    if (!ready || ready->preflight.status == 0)
        return false;
    session_answer_ready(x, &ready->preflight, SPAN(""));
    x->match = NULL;
    return true;
}

/* Whether a rule acts: in any case, or if `absent` where the lookup has found no file. */
static bool acts(const struct session_exchange *x, bool absent)
{
    return x->match && x->match->actor && x->match->actor->if_absent == absent;
}

static bool rewrites(const struct session_exchange *x, bool absent)
{
    return acts(x, absent) && x->match->actor->action == RULES_REWRITE;
}

const struct site_view *session_rules_view(const struct session_exchange *x,
                                           struct site_view *storage)
{
    const struct site_view *own = site_view(x->site->site);
    const struct rules_match *match = x->match;
    if (!match || (match->hidden == RULES_UNSET && !match->index && !match->fallback))
        return own;
    *storage = *own;
    if (match->hidden != RULES_UNSET)
        storage->hidden = match->hidden == RULES_ON;
    if (match->index)
        storage->index = match->index;
    if (match->fallback)
        storage->fallback = match->fallback[0] ? match->fallback : NULL;
    return storage;
}

static bool is_admitted_by(const struct session_exchange *x, const struct rules_rule *gate)
{
    const struct session_peer *peer = session_answer_client(x);
    return !gate ||
           rules_network_admits(gate->networks, gate->network_count, peer->family, peer->address);
}

/* Whether the acting rule may lead to the path: SITE_FILE, or why not. The files of a site have a
 * list of rules. These lead to nothing that a section refuses. */
static enum site_result judge_target(const struct session_exchange *x, struct span path)
{
    const struct rules *rules = x->site->rules;
    struct rules_match own;
    if (!session_guard_admits(x, path))
        return SITE_FORBIDDEN;
    if (!rules_lists(rules, x->match->actor))
        return SITE_FILE;
    rules_find(rules, path, &own);
    if (!is_admitted_by(x, own.gate))
        return SITE_FORBIDDEN;
    const bool is_closed = own.actor && !rules_lists(rules, own.actor) && !own.actor->if_absent &&
                           own.actor->action == RULES_STATUS;
    return is_closed ? SITE_ABSENT : SITE_FILE;
}

/* Looks up the path in `text`, behind the first `prefix_len` bytes of a key. */
static enum site_result find_rewritten(struct session_exchange *x, struct buf *text,
                                       size_t prefix_len, struct site_entry **ret_entry,
                                       bool *ret_new)
{
    struct site_view storage;
    const struct span key = buf_span(text), path = span_skip(key, prefix_len);
    if (text->overflow)
        return SITE_ABSENT;
    const enum site_result judgement = judge_target(x, path);
    session_trace_note(x, target_refused, judgement != SITE_FILE);
    if (judgement != SITE_FILE)
        return judgement;
    struct site_query query = {
        .kind = SITE_QUERY_PATH,
        .view = session_rules_view(x, &storage),
        .path = path,
        .key = key,
    };
    return session_fetch_find(x, &query, ret_entry, ret_new);
}

/* Finds the file at the target of the acting rule. */
static enum site_result find_target(struct session_exchange *x, struct site_entry **ret_entry,
                                    bool *ret_new)
{
    char bytes[sizeof("rewrite ") + RULES_DIGEST_MAX + REWRITTEN_MAX];
    struct buf key = buf_over(bytes, sizeof(bytes));
    buf_add(&key, SPAN("rewrite "));
    rules_add_digest(x->site->rules, x->match, &key);
    const size_t prefix_len = key.len;
    rules_target_add_path(&x->match->actor->target, &x->match->captures, &key);
    enum site_result result = find_rewritten(x, &key, prefix_len, ret_entry, ret_new);
    if (result == SITE_REDIRECT) { /* a folder: its index answers */
        buf_add_char(&key, '/');
        result = find_rewritten(x, &key, prefix_len, ret_entry, ret_new);
    }
    return result == SITE_LISTING || result == SITE_REDIRECT ? SITE_FORBIDDEN : result;
}

/* Answers with the status of the rule, and with its page. Without one, the page is that of the
 * site. */
static void answer_status(struct session_exchange *x)
{
    const enum http_status status = (enum http_status)x->match->actor->status;
    struct site_entry *page;
    bool fresh;
    if (x->match->actor->target.text.len == 0 || find_target(x, &page, &fresh) != SITE_FILE) {
        session_answer_status(x, status);
        return;
    }
    if (fresh)
        (void)session_head_publish(x, &page);
    session_answer_own_page(x, status, SPAN(""), page, fresh);
}

/* `ready` has the answer except for what depends on the request; NULL: it has to be written. */
static void answer_redirect(struct session_exchange *x, const struct rules_rule *actor,
                            const struct rules_captures *captures,
                            const struct session_ready *ready)
{
    char line[LOCATION_MAX];
    struct buf location = buf_over(line, sizeof(line));
    if (ready && actor->target.stars == 0 && (!x->target.has_query || actor->target.has_query)) {
        session_answer_ready(x, &ready->redirect, SPAN(""));
        return;
    }
    buf_add(&location, SPAN("Location: "));
    rules_target_add_location(&actor->target, captures, x->target.has_query, x->target.query,
                              &location);
    buf_add(&location, SPAN("\r\n"));
    if (location.overflow)
        session_answer_status(x, HTTP_URI_TOO_LONG);
    else if (ready)
        session_answer_ready(x, &ready->redirect, buf_span(&location));
    else
        session_answer_located(x, (enum http_status)actor->status, buf_span(&location));
}

/* False: a file answers. */
static bool answer_action(struct session_exchange *x)
{
    const struct rules_rule *actor = x->match->actor;
    if (actor->action == RULES_REWRITE)
        return false;
    if (actor->action == RULES_STATUS) {
        answer_status(x);
        if (actor->status >= HTTP_INTERNAL_SERVER_ERROR && !x->pending)
            stats_writer_add(&x->thread->stats, STATS_answers_5xx_expected, 1);
        return true;
    }
    const struct session_ready *ready = find_ready(x, actor);
    const bool is_ready = ready && ready->redirect.status != 0;
    answer_redirect(x, actor, &x->match->captures, is_ready ? ready : NULL);
    return true;
}

/* Counts the request for the address of the client, and sets x->retry_ns. A request that has waited
 * is counted once. */
static void meter_request(struct session_exchange *x)
{
    const struct rules_rule *meter = x->match->meter;
    const struct session_shared *shared = x->thread->shared;
    const struct session_peer *peer = session_answer_client(x);
    if (!meter || !peer->limited)
        return;
    x->metered = true;
    if (x->resumed && x->resumed->metered) {
        x->retry_ns = x->resumed->retry_ns;
        return;
    }
    const uint32_t number = (uint32_t)(x->site - shared->sites) * RULES_MAX + meter->number;
    x->retry_ns = session_limits_take_path(shared->limits, peer, number, meter->rate.interval_ns,
                                           meter->rate.burst, x->thread->now_ns);
    stats_writer_add(&x->thread->stats, STATS_requests_limited, x->retry_ns > 0);
}

static void refuse_for(struct session_exchange *x, uint64_t wait_ns)
{
    char line[sizeof("Retry-After: \r\n") + NUM_U64_DIGITS];
    struct buf out = buf_over(line, sizeof(line));
    buf_add(&out, SPAN("Retry-After: "));
    buf_add_u64(&out, (wait_ns + DURATION_SECOND - 1) / DURATION_SECOND);
    buf_add(&out, SPAN("\r\n"));
    session_answer_page(x, HTTP_TOO_MANY_REQUESTS, buf_span(&out));
}

bool session_rules_answer(struct session_exchange *x)
{
    if (!is_admitted_by(x, x->match->gate)) {
        session_trace_note(x, denied, true);
        session_answer_status(x, HTTP_FORBIDDEN);
        return true;
    }
    meter_request(x);
    if (x->retry_ns == 0)
        return acts(x, false) && answer_action(x);
    refuse_for(x, x->retry_ns);
    return true;
}

bool session_rules_answer_at_once(struct session_exchange *x)
{
    const struct rules_rule *actor;
    struct rules_captures captures;
    if (!x->site->ready || session_rules_are_private(x) || session_trace_of(x->thread))
        return false;
    const struct session_ready *ready = session_ready_find(x->site->ready, x->target.path);
    if (ready && (!x->target.has_query || ready->has_query)) {
        session_answer_ready(x, &ready->redirect, SPAN(""));
        return true;
    }
    ready =
        session_ready_find_alone(x->site->ready, x->site->rules, x->target.path, &actor, &captures);
    if (!ready)
        return false;
    answer_redirect(x, actor, &captures, ready);
    return true;
}

bool session_rules_quote(const void *scope, struct span path)
{
    const struct session_guard_scope *of = scope;
    struct rules_match own;
    rules_find(of->site->rules, path, &own);
    return own.gate == of->gate && (!own.actor || own.actor->if_absent) &&
           session_guard_shows(of, path);
}

bool session_rules_restrict_alike(const struct session_exchange *x, const struct rules_match *match,
                                  struct span path)
{
    struct session_guard_scope scope = session_guard_scope_of(x);
    scope.gate = match->gate;
    return session_rules_quote(&scope, path);
}

bool session_rules_answer_absent(struct session_exchange *x)
{
    session_trace_note(x, substituted, acts(x, true));
    return acts(x, true) && answer_action(x);
}

enum site_result session_rules_find(struct session_exchange *x, struct site_entry **ret_entry,
                                    bool *ret_new)
{
    struct site_view storage;
    if (rewrites(x, false))
        return find_target(x, ret_entry, ret_new);
    struct site_query query = {
        .kind = SITE_QUERY_PATH,
        .view = session_rules_view(x, &storage),
        .path = x->target.path,
        .key = x->target.path,
    };
    return session_fetch_find(x, &query, ret_entry, ret_new);
}

enum site_result session_rules_find_absent(struct session_exchange *x,
                                           struct site_entry **ret_entry, bool *ret_new)
{
    return rewrites(x, true) ? find_target(x, ret_entry, ret_new) : SITE_ABSENT;
}

/* Whether the client may have the fallback. Its file may need another password than the path. */
static bool may_send_fallback(const struct session_exchange *x, const char *fallback)
{
    char bytes[HTTP_TARGET_MAX];
    struct buf path = buf_over(bytes, sizeof(bytes));
    if (!x->access && !x->site->access_by_path)
        return true;
    buf_add_char(&path, '/');
    buf_add(&path, span_text(fallback));
    return !path.overflow && session_guard_admits(x, buf_span(&path));
}

enum site_result session_rules_find_fallback(struct session_exchange *x,
                                             struct site_entry **ret_entry, bool *ret_new)
{
    char bytes[sizeof("fallback ") + RULES_DIGEST_MAX];
    struct buf key = buf_over(bytes, sizeof(bytes));
    struct site_view storage;
    const struct site_view *view = session_rules_view(x, &storage);
    if (!view->fallback || !may_send_fallback(x, view->fallback))
        return SITE_ABSENT;
    buf_add(&key, SPAN("fallback "));
    if (x->match)
        rules_add_digest(x->site->rules, x->match, &key);
    struct site_query query = {
        .kind = SITE_QUERY_FALLBACK,
        .view = view,
        .path = span_text(view->fallback),
        .key = buf_span(&key),
    };
    return session_fetch_find(x, &query, ret_entry, ret_new);
}
