/* SPDX-License-Identifier: MIT */
#include "session/guard.h"

#include "session/rules.h"
#include "session/scheme.h"
#include "session/trace.h"

enum {
    NAME_MAX_BYTES = 256,
    NAMED_MAX = HTTP_TARGET_MAX + RULES_TARGET_MAX + NAME_MAX_BYTES,
    FORMS_MAX = 4 /* stored forms of stored forms, from either end of the path's endings */
};

/* The file that a path may be a stored form of. False: it is none. */
static bool take_ending(struct span *path)
{
    static const struct span endings[] = { SPAN(".br"), SPAN(".zst"), SPAN(".gz") };
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (span_ends(*path, endings[i])) {
            *path = span_first(*path, path->len - endings[i].len);
            return true;
        }
    return false;
}

static unsigned count_endings(struct span path)
{
    unsigned count = 0;
    while (take_ending(&path))
        count++;
    return count;
}

/* The rule that gives a file its password, or NULL. Of a stored form and its file, the later rule
 * decides: `backup.tar.gz` may be a file of its own. Each name is compared with the patterns, so of
 * a path with many endings the outermost and the innermost names count, and those between do not.
 */
static const struct rules_rule *keeper_of_file(const struct rules *rules, struct span path)
{
    const unsigned endings = count_endings(path);
    const struct rules_rule *keeper = NULL;
    for (unsigned i = 0; i <= endings; i++, (void)take_ending(&path)) {
        if (i >= FORMS_MAX && i + FORMS_MAX <= endings)
            continue;
        const struct rules_rule *rule = rules_keeper(rules, path);
        if (rule && rule->auth == RULES_ON && (!keeper || rule > keeper))
            keeper = rule;
    }
    return keeper;
}

/* The same for a path that may be that of a folder. */
static const struct rules_rule *keeper_of_path(const struct rules *rules, const char *const *index,
                                               struct span path)
{
    char bytes[NAMED_MAX];
    const struct rules_rule *keeper = NULL;
    const bool is_folder = span_ends(path, SPAN("/"));
    for (; is_folder && !keeper && index && *index; index++) {
        struct buf name = buf_over(bytes, sizeof(bytes));
        buf_add(&name, path);
        buf_add(&name, span_text(*index));
        if (!name.overflow)
            keeper = keeper_of_file(rules, buf_span(&name));
    }
    return keeper ? keeper : keeper_of_file(rules, path);
}

/* The rule for the path that a rewrite leads to, or NULL. That path may be the name of a folder,
 * whose index then answers. */
static const struct rules_rule *keeper_of_rewrite(const struct rules *rules,
                                                  const char *const *index,
                                                  const struct rules_match *match)
{
    char bytes[HTTP_TARGET_MAX + RULES_TARGET_MAX];
    struct buf target = buf_over(bytes, sizeof(bytes));
    if (!match->actor || match->actor->if_absent || match->actor->action != RULES_REWRITE)
        return NULL;
    rules_target_add_path(&match->actor->target, &match->captures, &target);
    const struct rules_rule *keeper = keeper_of_path(rules, index, buf_span(&target));
    if (!keeper && !span_ends(buf_span(&target), SPAN("/"))) {
        buf_add_char(&target, '/');
        keeper = keeper_of_path(rules, index, buf_span(&target));
    }
    return keeper;
}

const struct rules_rule *session_guard_rule(const struct rules *rules, const char *const *index,
                                            struct span path)
{
    struct rules_match match;
    rules_find(rules, path, &match);
    index = match.index ? match.index : index;
    const struct rules_rule *keeper = keeper_of_rewrite(rules, index, &match);
    return keeper ? keeper : keeper_of_path(rules, index, path);
}

static const struct session_access *access_by(const struct session_site *site,
                                              const struct rules_rule *keeper)
{
    return keeper ? &site->access[keeper->number] : NULL;
}

/* The password that the request needs. NULL: none. Sets x->kept if the cache has the answer and no
 * rule guards it. */
static const struct session_access *find_access(struct session_exchange *x)
{
    const struct session_site *site = x->site;
    const struct span path = session_rules_covered_path(x);
    if (!site->access_by_path)
        return site->access;
    x->kept = path.len > 0 ? site_find_kept(site->site, x->thread->reader, path, x->thread->now_ns)
                           : NULL;
    if (x->kept && !x->kept->guarded)
        return NULL;
    x->kept = NULL;
    const struct rules_rule *keeper =
        session_guard_rule(site->rules, site_options(site->site)->index, path);
    session_trace_note(x, keeper, keeper);
    return access_by(site, keeper);
}

/* A browser asks without a password whether a script may send one (Fetch standard, CORS-preflight
 * fetch). The answer depends on the rules alone. */
static bool is_preflight(const struct session_exchange *x)
{
    return x->request->method == HTTP_OPTIONS && x->site->rules &&
           http_request_has(x->request, HTTP_FIELD_ORIGIN);
}

enum session_access_verdict session_guard_decide(struct session_exchange *x, bool is_refused)
{
    x->access = find_access(x);
    if (is_refused || !x->access || session_scheme_decides(x) || session_scheme_is_challenge(x) ||
        is_preflight(x))
        return SESSION_ACCESS_OPEN;
    const enum session_access_verdict verdict = session_access_decide(x);
    x->admitted = verdict == SESSION_ACCESS_RIGHT || verdict == SESSION_ACCESS_REMEMBERED;
    return verdict;
}

struct session_guard_scope session_guard_scope_of(const struct session_exchange *x)
{
    struct site_view storage;
    return (struct session_guard_scope){
        .site = x->site,
        .access = x->access,
        .admitted = x->admitted,
        .index = session_rules_view(x, &storage)->index,
        .gate = x->match ? x->match->gate : NULL,
    };
}

bool session_guard_shows(const void *scope, struct span path)
{
    const struct session_guard_scope *of = scope;
    const struct session_site *site = of->site;
    if (!site->access)
        return true;
    const struct session_access *needed =
        site->access_by_path ? access_by(site, keeper_of_path(site->rules, of->index, path))
                             : site->access;
    return !needed || (of->admitted && of->access->users == needed->users);
}

bool session_guard_admits(const struct session_exchange *x, struct span path)
{
    const struct session_guard_scope scope = session_guard_scope_of(x);
    return session_guard_shows(&scope, path);
}
