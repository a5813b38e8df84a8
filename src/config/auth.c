/* SPDX-License-Identifier: MIT */
#include "config/auth.h"

#include "config/address.h"
#include "config/secrecy.h"

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
        config_problem_error(&store->problems, item->origin, "%s`%s` cannot be read: %s", name,
                             item->text,
                             errno == ENOENT ? "there is no such file" : strerror(errno));
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

static bool has_word(const char *text, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at++)
        if (at[-1] != '-' && at[len] != '-')
            return true;
    return false;
}

/* Whether `Name: value` lets a shared cache keep an answer. `-Name` does not. */
static bool grants_to_shared_caches(const char *line)
{
    static const struct span cache_control = SPAN("Cache-Control");
    const char *colon = strchr(line, ':');
    const struct span name = span_of(line, colon ? (size_t)(colon - line) : 0);
    if (name.len < cache_control.len)
        return false;
    if (span_equal_nocase(name, cache_control))
        return has_word(colon, "public") || has_word(colon, "s-maxage") ||
               has_word(colon, "must-revalidate");
    const struct span end = span_skip(name, name.len - cache_control.len);
    return span_equal_nocase(end, cache_control) ||
           span_equal_nocase(name, SPAN("Surrogate-Control"));
}

/* A shared cache would send the site to clients that have no password. */
static void check_caches(struct config_store *store, const struct config_section_values *values,
                         enum config_setting_place place, const char *prefix)
{
    for (const struct config_item *item = config_store_first(values, place); item;
         item = item->next)
        if (grants_to_shared_caches(config_arena_print(&store->arena, "%s%s", prefix, item->text)))
            config_problem_error(&store->problems, item->origin,
                                 "%sshared caches would keep answers of a site that needs a "
                                 "password (`auth`); remove this line",
                                 config_store_label(store, place, item->origin));
}

static void check_all_caches(struct config_store *store, const struct config_section_values *site)
{
    check_caches(store, site, SETTING_headers, "");
    for (const struct config_section_values *path = site->paths; path; path = path->next) {
        check_caches(store, path, SETTING_path_headers, "");
        check_caches(store, path, SETTING_path_cache_control, "Cache-Control: ");
    }
}

/* Without TLS every machine on the way can read the password. */
static void check_plain(struct config_store *store, const struct config_section_values *site,
                        const struct config_item *item)
{
    const struct config_item *redirect = config_store_first(site, SETTING_https_redirect);
    if (redirect && strcmp(redirect->text, "on") == 0)
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

void config_auth_verify(struct config_store *store)
{
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        const struct config_item *item = config_store_first(site, SETTING_auth);
        const struct config_item *realm = config_store_first(site, SETTING_auth_realm);
        if (item) {
            check_source(store, item);
            check_all_caches(store, site);
            check_plain(store, site, item);
        } else if (realm && realm->origin.layer != CONFIG_BY_DEFAULT) {
            config_problem_warning(&store->problems, realm->origin,
                                   "%sthis has no effect: the site has no `auth`",
                                   config_store_label(store, SETTING_auth_realm, realm->origin));
        }
    }
}
