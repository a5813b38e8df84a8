/* SPDX-License-Identifier: MIT
 *
 * Which password a request needs, where rules of a site give some paths one (the setting `auth` of
 * a section [path PATTERN]). The answer is a function of the requested path and the configuration,
 * and never of the disk. So it is known before any file is looked up.
 *
 * A path is only one of the names of a file. So these names count, too:
 *
 * - of a folder's path: the index files that the folder may have
 * - of a stored form (page.html.br): the file that it is a form of
 * - of a rewrite: the path that it leads to, which decides before the requested one. A rewrite that
 *   acts only where no file answers is checked when it acts
 *
 * Private to session/, but for session_guard_rule.
 */
#pragma once

#include "rules/rules.h"
#include "session/access.h"
#include "session/answer.h"

/* The rule that gives a path its password. NULL: the path needs none. `index` has the names of
 * index files, NULL at the end. */
const struct rules_rule *session_guard_rule(const struct rules *rules, const char *const *index,
                                            struct span path);

/* Decides whether the client may have an answer of a site in which something needs a password, and
 * sets x->access. A redirect to https comes first, so that no password is sent without TLS. An
 * issuer of certificates has no password. `is_refused`: the answer is an error in any case. Sets
 * x->kept if the cache has the answer and no rule guards it. */
enum session_access_verdict session_guard_decide(struct session_exchange *x, bool is_refused);

/* The entry that site_find_kept finds for the path of the request. NULL: there is none, or the
 * entry needs a password of its path. */
static inline struct site_entry *session_guard_kept(const struct session_exchange *x)
{
    if (x->site->access_by_path)
        return x->kept;
    return site_find_kept(x->site->site, x->thread->reader, x->target.path, x->thread->now_ns);
}

/* Whether the file at `path` may be sent to the client: it needs no password, or the one that the
 * client has given. It is the last check of a file that another path leads to. */
bool session_guard_admits(const struct session_exchange *x, struct span path);

/* What of a request decides which other files its client may have. It stays valid as long as the
 * site, so that another thread can render a listing. */
struct session_guard_scope {
    const struct session_site *site;
    const struct session_access *access; /* the password that the path needs; NULL: none */
    bool admitted;                       /* the client has given it */
    const char *const *index;            /* names of index files, NULL at the end */
    const struct rules_rule *gate;       /* the rule that admits networks; NULL: there is none */
};
struct session_guard_scope session_guard_scope_of(const struct session_exchange *x);

/* session_guard_admits, as a listing needs it. `scope` is a struct session_guard_scope. */
bool session_guard_shows(const void *scope, struct span path);
