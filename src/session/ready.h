/* SPDX-License-Identifier: MIT
 *
 * Answers of rules that are made with the configuration: redirects, and the answers to browsers
 * that ask whether a script may send a request (preflights). They have no body. So a redirect costs
 * about what a small file from the cache does.
 *
 * The fields of an answer depend on all rules that cover the path. Each answer is made for one such
 * set of rules: that of an example of its rule's pattern. Paths with another set get an answer that
 * is written for the request. Errors are not ready-made, because their pages have an id.
 *
 * A redirect of one path, whose rule has no star, is found by the path alone if no other rule
 * restricts the path. Then a request costs no comparison with the patterns. A path of a rule with
 * stars costs one, if only rules for every path cover it, too.
 *
 * Private to session/, except for session_ready_new and session_ready_free.
 */
#pragma once

#include "base/check.h"
#include "rules/rules.h"

/* An answer without its Date, and without what depends on the connection or the request. */
struct session_ready_answer {
    unsigned status;          /* 0: there is no such answer */
    struct span front;        /* lines before Location */
    struct span location;     /* this line, if no star is in it; else empty */
    struct span back;         /* lines behind it, and the empty line */
    struct span status_block; /* the same for HTTP/2 */
    struct span front_block, location_block, back_block;
};

/* The answers that one rule decides about. */
struct session_ready {
    struct span path; /* the only path of the rule, if each client gets `redirect`; else empty */
    bool has_query;   /* with `path`: the target has a query, in place of that of a request */
    bool is_alone;    /* each client gets `redirect`, and the other rules cover every path */
    uint64_t bits[RULES_WORDS]; /* the rules that cover the path */
    struct session_ready_answer redirect;
    struct session_ready_answer preflight;
    char *memory;
};

/* The answers of all rules of a site. */
struct session_ready_set {
    struct session_ready *each;         /* by the place of the rule */
    const struct session_ready **slots; /* those with a path, by its hash; NULL: an empty slot */
    size_t slot_count; /* a power of two, more than their number; 0: there are none */
    uint64_t lengths;  /* of their paths, modulo 64, as bits: other paths need no hash */
};

/* The place of a rule: those of the list are behind the others. */
static inline size_t session_ready_place(const struct rules *rules, const struct rules_rule *rule)
{
    const uintptr_t first = (uintptr_t)rules->rule, at = (uintptr_t)rule;
    const bool is_listed = at < first || at >= (uintptr_t)(rules->rule + rules->count);
    return is_listed ? rules->count + (size_t)(rule - rules->list) : (size_t)(rule - rules->rule);
}

/* Makes the answers of each rule. `server_field` is a line that every answer has, or empty. NULL
 * without memory. Borrows the rules. */
MUST_USE struct session_ready_set *session_ready_new(const struct rules *rules,
                                                     struct span server_field);
void session_ready_free(struct session_ready_set *set, const struct rules *rules);

/* The answers for this path, which are the same for every client; or NULL. */
const struct session_ready *session_ready_find(const struct session_ready_set *set,
                                               struct span path);

/* The rule that redirects this path, and its answers, if the first bytes of the path exclude all
 * other rules but those that cover every path. Then *ret_captures is filled. NULL: the rules have
 * to be found. */
const struct session_ready *session_ready_find_alone(const struct session_ready_set *set,
                                                     const struct rules *rules, struct span path,
                                                     const struct rules_rule **ret_rule,
                                                     struct rules_captures *ret_captures);

/* Whether the answers are those for the rules in `match`. */
static inline bool session_ready_fits(const struct session_ready *ready,
                                      const struct rules_match *match)
{
    uint64_t differences = 0;
    for (unsigned i = 0; i < RULES_WORDS; i++)
        differences |= ready->bits[i] ^ match->bits[i];
    return differences == 0;
}
