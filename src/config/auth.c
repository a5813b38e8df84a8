/* SPDX-License-Identifier: MIT */
#include "config/auth.h"

#include "config/address.h"
#include "config/secrecy.h"
#include "rules/lifetime.h"
#include "rules/relation.h"
#include "rules/rules.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- values ---- */

/* The form of all supported methods: $method$...$... */
static bool check_hash(struct span text, struct config_reason *ret_reason)
{
    enum { HASH_MAX = 383 }; /* CRYPT_OUTPUT_SIZE, without its NUL */
    bool good = text.len <= HASH_MAX && text.at[0] == '$';
    size_t dollars = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.at[i]);
        dollars += c == '$';
        good = good &&
               ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("./$=,+-", c)));
    }
    return (good && dollars >= 3 && text.at[text.len - 1] != '$') ||
           config_problem_refuse(ret_reason,
                                 "this is not the hash of a password; `weir password` makes one");
}

/* It is sent between quotes (RFC 9110 section 11.5). */
static bool check_realm(struct span text, struct config_reason *ret_reason)
{
    enum { REALM_MAX = 64 };
    bool good = text.len <= REALM_MAX;
    for (size_t i = 0; i < text.len && good; i++)
        good = text.at[i] >= ' ' && text.at[i] <= '~' && !strchr("\"\\", text.at[i]);
    return good || config_problem_refuse(ret_reason,
                                         "a realm has at most %d ASCII characters, and no quote "
                                         "or backslash",
                                         REALM_MAX);
}

bool config_auth_check(enum config_kind kind, struct span text, struct config_reason *ret_reason)
{
    return kind == CONFIG_HASH ? check_hash(text, ret_reason) : check_realm(text, ret_reason);
}

/* ---- the file ---- */

/* A file that only root can read is no error here: the master may be root. */
static void check_source(struct config_store *store, const struct config_item *item)
{
    const char *name = config_store_label(store, SETTING_auth, item->origin);
    struct stat info;
    if (stat(item->text, &info) < 0 && errno != EACCES) {
        config_problem_error(
            &store->problems, item->origin, "%s`%s` cannot be read: %s", name, item->text,
            errno == ENOENT ? "there is no such file; `weir password NAME` makes a line of one"
                            : strerror(errno));
        return;
    }
    if (access(item->text, R_OK) < 0) {
        config_problem_warning(&store->problems, item->origin,
                               "%s`%s` cannot be read by this user: %s; start the server as a user "
                               "who can",
                               name, item->text, strerror(errno));
        return;
    }
    if (!S_ISREG(info.st_mode))
        config_problem_error(&store->problems, item->origin, "%s`%s` is not a file", name,
                             item->text);
    else
        config_secrecy_check(store, item, name, "hashes", info.st_mode);
}

/* ---- the settings beside it ---- */

/* `-Name` removes a field. */
static bool opens_caches(const char *line)
{
    return line[0] != '-' && rules_lifetime_is_shared(span_text(line));
}

/* A shared cache would send the answers to clients that have no password. */
static void check_caches(struct config_store *store, const struct config_section_values *values,
                         enum config_setting_place place, const char *prefix)
{
    for (const struct config_item *item = config_store_first(values, place); item;
         item = item->next)
        if (opens_caches(config_arena_print(&store->arena, "%s%s", prefix, item->text)))
            config_problem_error(&store->problems, item->origin,
                                 "%sshared caches would keep answers that need a password "
                                 "(`auth`); remove this line",
                                 config_store_label(store, place, item->origin));
}

/* Without TLS every machine on the way can read the password. */
static void check_plain(struct config_store *store, const struct config_section_values *site,
                        const struct config_item *item)
{
    const struct config_item *redirect = config_store_first(site, SETTING_https_redirect);
    if (config_store_is_on(redirect))
        return;
    for (const struct config_item *listen = config_store_first(&store->server, SETTING_listen);
         listen; listen = listen->next) {
        const struct span address = span_text(listen->text);
        if (config_address_is_tls(address) || !config_address_is_public(address))
            continue;
        config_problem_warning(&store->problems, item->origin,
                               "%spasswords travel without TLS to %s, and others can read them "
                               "there; use https:// and `https-redirect = on`",
                               config_store_label(store, SETTING_auth, item->origin), listen->text);
        return;
    }
}

static void check_realm_is_used(struct config_store *store, const struct config_item *realm,
                                const char *where)
{
    if (realm && realm->origin.layer != CONFIG_BY_DEFAULT)
        config_problem_warning(&store->problems, realm->origin,
                               "%sthis has no effect: the %s has no `auth` with a file",
                               config_store_label(store, SETTING_auth_realm, realm->origin), where);
}

/* ---- the paths of a site ---- */

/* A section [path PATTERN], with its rule. */
struct keeping {
    struct config_store *store;
    const struct config_section_values *site;
    const struct rules *rules;
    const struct config_section_values *values;
    const struct config_path *paths; /* all of the site */
    unsigned place;                  /* of the rule; that of the site is 0 */
};

static const struct rules_rule *rule_of(const struct keeping *k)
{
    return &k->rules->rule[k->place];
}

/* The line of the heading that rule number `place` is made of. */
static unsigned line_of(const struct keeping *k, unsigned place)
{
    const struct config_section_values *path = k->site->paths;
    for (unsigned i = 1; i < place; i++)
        path = path->next;
    return path->origin.line;
}

/* Whether a section and an earlier one need the same password, or both none. */
static bool is_same(const struct keeping *k, unsigned earlier)
{
    const struct rules_rule *rule = rule_of(k), *other = &k->rules->rule[earlier];
    const char *file = k->paths[k->place - 1].path_auth;
    const struct config_item *of_site = config_store_first(k->site, SETTING_auth);
    if (rule->auth != other->auth || rule->auth == RULES_OFF)
        return rule->auth == other->auth;
    return strcmp(file, earlier == 0 ? of_site->text : k->paths[earlier - 1].path_auth) == 0;
}

static void refuse_hiding(const struct keeping *k, const struct config_item *item, unsigned earlier)
{
    if (earlier == 0)
        config_problem_error(&k->store->problems, item->origin,
                             "auth: this section covers every path, so the `auth` of the site has "
                             "no effect; remove one of them");
    else
        config_problem_error(&k->store->problems, item->origin,
                             "auth: this section covers all paths of [path %s] (line %u), so the "
                             "`auth` there has no effect; move this section before it",
                             k->paths[earlier - 1].pattern, line_of(k, earlier));
}

/* The last section with `auth` decides. A section that takes all paths of an earlier one is a
 * mistake. A narrower one is an exception. Any other pair may be a mistake. */
static void check_order(const struct keeping *k, const struct config_item *item)
{
    const struct rules_pattern *pattern = &rule_of(k)->pattern;
    bool changes = rule_of(k)->auth == RULES_ON;
    for (unsigned i = 0; i < k->place; i++) {
        const struct rules_rule *earlier = &k->rules->rule[i];
        const bool is_rule = earlier->auth == RULES_ON || (earlier->auth == RULES_OFF && i > 0);
        if (!is_rule || !rules_relation_meets(pattern, &earlier->pattern))
            continue;
        changes = changes || earlier->auth == RULES_ON;
        if (is_same(k, i))
            continue;
        if (rules_relation_covers(pattern, &earlier->pattern))
            refuse_hiding(k, item, i);
        else if (!rules_relation_covers(&earlier->pattern, pattern))
            config_problem_warning(&k->store->problems, item->origin,
                                   "auth: [path %s] (line %u) covers some of the same paths; for "
                                   "them the `auth` of this section holds, because it is later",
                                   k->paths[i - 1].pattern, line_of(k, i));
    }
    if (!changes)
        config_problem_warning(&k->store->problems, item->origin,
                               "auth: this has no effect: no earlier section gives these paths a "
                               "password");
}

/* A pattern without stars that is the name of a folder leaves all files of the folder open. */
static void check_folder(const struct keeping *k, const struct config_item *item)
{
    struct stat info;
    const char *pattern = k->paths[k->place - 1].pattern;
    const struct config_item *root = config_store_first(k->site, SETTING_root);
    if (rule_of(k)->pattern.stars > 0 || !root ||
        stat(config_arena_print(&k->store->arena, "%s%s", root->text, pattern), &info) < 0 ||
        !S_ISDIR(info.st_mode))
        return;
    config_problem_warning(&k->store->problems, item->origin,
                           "auth: `%s` is a folder, and the pattern covers its name alone; write "
                           "[path %s%s**] for its files",
                           pattern, pattern, pattern[strlen(pattern) - 1] == '/' ? "" : "/");
}

/* Whether all paths of a section need a password. */
static bool needs_password(const struct keeping *k)
{
    for (unsigned i = k->rules->count; i-- > 0;) {
        const struct rules_rule *rule = &k->rules->rule[i];
        if (rule->auth != RULES_UNSET &&
            rules_relation_covers(&rule->pattern, &rule_of(k)->pattern))
            return rule->auth == RULES_ON;
    }
    return false;
}

static void check_path(const struct keeping *k)
{
    const struct config_item *item = config_store_first(k->values, SETTING_path_auth);
    if (item)
        check_order(k, item);
    if (item && rule_of(k)->auth == RULES_ON) {
        check_source(k->store, item);
        check_plain(k->store, k->site, item);
        check_folder(k, item);
    } else {
        check_realm_is_used(k->store, config_store_first(k->values, SETTING_path_auth_realm),
                            "section");
    }
    if (!needs_password(k))
        return;
    check_caches(k->store, k->values, SETTING_path_headers, "");
    check_caches(k->store, k->values, SETTING_path_cache_control, "Cache-Control: ");
}

static void check_site(struct config_store *store, const struct config_section_values *values,
                       const struct config_site *site)
{
    const struct config_item *item = config_store_first(values, SETTING_auth);
    if (item) {
        check_source(store, item);
        check_caches(store, values, SETTING_headers, "");
        check_plain(store, values, item);
    }
    bool has_paths = false;
    struct keeping keeping = { store, values, site->rules, values->paths, site->paths, 1 };
    for (; site->rules && keeping.values; keeping.values = keeping.values->next) {
        has_paths = has_paths || rule_of(&keeping)->auth == RULES_ON;
        check_path(&keeping);
        keeping.place++;
    }
    if (!item && !has_paths)
        check_realm_is_used(store, config_store_first(values, SETTING_auth_realm), "site");
}

void config_auth_verify(struct config_store *store)
{
    const struct config_site *site = store->config.sites;
    for (const struct config_section_values *values = store->sites; values; values = values->next)
        check_site(store, values, site++);
}
