/* SPDX-License-Identifier: MIT
 *
 * The rules of a site (rules/rules.h), applied to one request. They cover the path that the client
 * requested, and never the file that answers: an index, a fallback or a rewrite.
 *
 * Fields of rules are in the ready-made head of a cached entry. So an entry that other paths use,
 * too, is in the cache once for each set of rules, under a key with the digest of that set.
 *
 * Private to session/.
 */
#pragma once

#include "rules/rules.h"
#include "session/answer.h"

/* The path that rules cover; empty for a request without one. */
static inline struct span session_rules_covered_path(const struct session_exchange *x)
{
    const bool has_path = x->target.fault == HTTP_FAULT_NONE && x->target.path.len > 0 &&
                          x->target.path.at[0] == '/';
    return has_path ? x->target.path : SPAN("");
}

/* Whether the rules must keep the answer out of shared caches. A site that needs a password as a
 * whole says so in its own fields. */
static inline bool session_rules_are_private(const struct session_exchange *x)
{
    return x->access && x->site->access_by_path;
}

/* Appends the fields that the rules of the site add to an answer of this kind, also those that
 * depend on the request. For answers without an entry: a page, a redirect, a text. */
void session_rules_add_fields(const struct session_exchange *x, bool is_error, struct buf *head);

/* The rule of the path that has a folder for pages of errors, or NULL. The site has rules. */
const struct rules_rule *session_rules_pages(const struct session_exchange *x);

/* Notes in a new entry which rules depend on the request. False without memory. */
bool session_rules_mark(const struct session_exchange *x, struct site_entry *entry);

/* The line of an answer for the Origin of the request, or an empty span. `cors` is the rule that
 * decides, or NULL. */
static inline struct span session_rules_origin_line(const struct session_exchange *x,
                                                    const struct rules_rule *cors)
{
    if (!cors || !http_request_has(x->request, HTTP_FIELD_ORIGIN))
        return SPAN("");
    return rules_origin_line(cors, http_request_field(x->request, x->head, HTTP_FIELD_ORIGIN));
}

/* Fills *match with the rules of the site that cover the path of the request. Sets x->match to it,
 * and x->origin_line. False: the site has no rules, and nothing has changed. */
bool session_rules_resolve(struct session_exchange *x, struct rules_match *match);

/* Answers a browser that asks whether a script may send a request (a preflight of the CORS
 * protocol), if x->match has a ready-made answer. Then x->match is NULL. False: it has none. */
bool session_rules_answer_preflight(struct session_exchange *x);

/* Answers the request with a redirect that its path alone decides about. False: the rules of the
 * path have to be found first. */
bool session_rules_answer_at_once(struct session_exchange *x);

/* Answers the request with 403, 429, a redirect or a status, if the rules in x->match say so.
 * False: a file answers. */
bool session_rules_answer(struct session_exchange *x);

/* Whether the rules restrict the file at `path` as they do the requested path, which has `match`. A
 * file whose own rules redirect, rewrite, refuse or need another password is restricted in another
 * way. */
bool session_rules_restrict_alike(const struct session_exchange *x, const struct rules_match *match,
                                  struct span path);

/* Whether a listing may show the text of the file at `path`. `scope` is a struct
 * session_guard_scope (session/guard.h). */
bool session_rules_quote(const void *scope, struct span path);

/* The same as session_rules_answer, for a rule that acts only where no file answers. Call it when
 * there is none. */
bool session_rules_answer_absent(struct session_exchange *x);

/* What the rules of the path say about files, in place of the options. `storage` may hold it. */
const struct site_view *session_rules_view(const struct session_exchange *x,
                                           struct site_view *storage);

/* session_fetch_find for the path of the request, or for the path that a rule puts in its place. */
enum site_result session_rules_find(struct session_exchange *x, struct site_entry **ret_entry,
                                    bool *ret_new);

/* The same for a rewrite of a rule that acts only where no file answers. SITE_ABSENT: there is no
 * such rule, either. */
enum site_result session_rules_find_absent(struct session_exchange *x,
                                           struct site_entry **ret_entry, bool *ret_new);

/* The fallback file, with the entry for the rules of the path. */
enum site_result session_rules_find_fallback(struct session_exchange *x,
                                             struct site_entry **ret_entry, bool *ret_new);
