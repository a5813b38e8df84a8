/* SPDX-License-Identifier: MIT */
#include "config/tls.h"

#include "config/address.h"
#include "config/secrecy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct config_item *first_tls_address(const struct config_store *store,
                                                   enum config_setting_place place)
{
    const struct config_item *item = config_store_first(&store->server, place);
    while (item && !config_address_is_tls(span_text(item->text)))
        item = item->next;
    return item;
}

static bool has_tls_page(const struct config_store *store)
{
    const struct config_item *stats = config_store_first(&store->server, SETTING_stats);
    return first_tls_address(store, SETTING_stats_listen) && config_store_is_on(stats);
}

/* ---- files ---- */

/* Whether a line of the file begins a private key in PEM form: 1, 0 or -errno. */
static int find_key(const char *path)
{
    enum { PEM_LINE_MAX = 128, LINES_MAX = 65536 }; /* longer than those of a chain */
    char line[PEM_LINE_MAX];
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    bool found = false;
    for (unsigned i = 0; i < LINES_MAX && !found && fgets(line, sizeof(line), file); i++)
        found = strncmp(line, "-----BEGIN ", 11) == 0 && strstr(line, "PRIVATE KEY-----") != NULL;
    const int rc = ferror(file) ? -EIO : found;
    fclose(file);
    return rc;
}

static void check_input(struct config_store *store, const struct config_item *item,
                        enum config_setting_place place, bool needs_key)
{
    const char *name = config_store_label(store, place, item->origin);
    struct stat info;
    if (stat(item->text, &info) < 0) {
        config_problem_error(&store->problems, item->origin, "%s`%s` cannot be read: %s", name,
                             item->text,
                             errno == ENOENT   ? "there is no such file"
                             : errno == EACCES ? "this user cannot enter its folder; use a user "
                                                 "that can, such as root"
                                               : strerror(errno));
        return;
    }
    if (!S_ISREG(info.st_mode)) {
        config_problem_error(&store->problems, item->origin, "%s`%s` is not a file", name,
                             item->text);
        return;
    }
    const int key = find_key(item->text);
    if (key == -EACCES)
        config_problem_error(&store->problems, item->origin,
                             "%s`%s` cannot be read by this user: %s; use a user that can, such as "
                             "root",
                             name, item->text, strerror(EACCES));
    else if (key < 0)
        config_problem_error(&store->problems, item->origin, "%s`%s` cannot be read: %s", name,
                             item->text, strerror(-key));
    else if (key == 0 && needs_key)
        config_problem_error(&store->problems, item->origin,
                             "%s`%s` has no private key; name the file of the key with tls-key",
                             name, item->text);
    else if (key > 0)
        config_secrecy_check(store, item, name, "key", info.st_mode);
}

static size_t count_items(const struct config_item *item)
{
    size_t count = 0;
    for (; item; item = item->next)
        count++;
    return count;
}

/* Keys and certificates belong together in their order. Without keys each certificate's file has
 * its own. */
static void check_files(struct config_store *store, const struct config_section_values *site)
{
    const struct config_item *certificates = config_store_first(site, SETTING_tls_certificates);
    const struct config_item *keys = config_store_first(site, SETTING_tls_keys);
    size_t certificate_count = count_items(certificates), key_count = count_items(keys);
    for (const struct config_item *item = certificates; item; item = item->next)
        check_input(store, item, SETTING_tls_certificates, key_count == 0);
    for (const struct config_item *item = keys; item; item = item->next)
        check_input(store, item, SETTING_tls_keys, false);
    if (keys && certificate_count == 0)
        config_problem_error(&store->problems, keys->origin,
                             "%sthe key has no certificate; name it with tls-certificate",
                             config_store_label(store, SETTING_tls_keys, keys->origin));
    else if (keys && key_count != certificate_count)
        config_problem_error(&store->problems, keys->origin,
                             "%sthere are %zu keys for %zu certificates; name a key for each "
                             "certificate, in the same order",
                             config_store_label(store, SETTING_tls_keys, keys->origin), key_count,
                             certificate_count);
}

/* ---- addresses ---- */

/* A setting that has no effect without an address that begins with https://. */
static void warn_of_no_effect(struct config_store *store,
                              const struct config_section_values *values,
                              enum config_setting_place place)
{
    const struct config_item *item = config_store_first(values, place);
    if (item && item->origin.layer != CONFIG_BY_DEFAULT && strcmp(item->text, "off") != 0)
        config_problem_warning(&store->problems, item->origin,
                               "%sthis has no effect: no address of `listen` begins with https://",
                               config_store_label(store, place, item->origin));
}

static bool has_plain_address(const struct config_store *store)
{
    const struct config_item *item = config_store_first(&store->server, SETTING_listen);
    while (item && config_address_is_tls(span_text(item->text)))
        item = item->next;
    return item != NULL;
}

static void check_h2c(struct config_store *store)
{
    const struct config_item *item = config_store_first(&store->server, SETTING_h2c);
    if (config_store_is_on(item) && !has_plain_address(store))
        config_problem_warning(&store->problems, item->origin,
                               "%sthis has no effect: every address of `listen` begins with "
                               "https://; the setting for these is http2",
                               config_store_label(store, SETTING_h2c, item->origin));
}

static void check_early_hints(struct config_store *store, const struct config_section_values *site,
                              bool has_tls)
{
    const struct config_item *hints = config_store_first(site, SETTING_early_hints);
    const bool over_tls = has_tls &&
                          config_store_is_on(config_store_first(&store->server, SETTING_http2));
    const bool plain = has_plain_address(store) &&
                       config_store_is_on(config_store_first(&store->server, SETTING_h2c));
    if (config_store_is_on(hints) && !over_tls && !plain)
        config_problem_warning(&store->problems, hints->origin,
                               "%sthis has no effect: no address of `listen` speaks HTTP/2, which "
                               "needs https:// and `http2 = on`, or `h2c = on`",
                               config_store_label(store, SETTING_early_hints, hints->origin));
}

/* A proxy of `forwarded-from` may speak https with the clients. */
static void check_site_without_tls(struct config_store *store,
                                   const struct config_section_values *site)
{
    const struct config_item *redirect = config_store_first(site, SETTING_https_redirect);
    const bool has_proxy = config_store_first(&store->server, SETTING_forwarded_from) != NULL;
    if (config_store_is_on(redirect) && !has_proxy)
        config_problem_error(&store->problems, redirect->origin,
                             "%sthere is no address to redirect to: no `listen` begins with "
                             "https://, and no `forwarded-from` names a proxy that speaks https",
                             config_store_label(store, SETTING_https_redirect, redirect->origin));
    if (!has_tls_page(store))
        warn_of_no_effect(store, site, SETTING_tls_certificates);
    if (!has_proxy)
        warn_of_no_effect(store, site, SETTING_hsts_s);
    for (const struct config_section_values *path = site->paths; path && !has_proxy;
         path = path->next)
        warn_of_no_effect(store, path, SETTING_path_dictionary);
}

/* The server can make a certificate for this machine alone, and needs one of the operator for
 * other addresses. */
static void check_has_certificate(struct config_store *store, enum config_setting_place place)
{
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        if (config_store_first(site, SETTING_tls_certificates))
            return;
    for (const struct config_item *item = first_tls_address(store, place); item;
         item = item->next) {
        if (!config_address_is_tls(span_text(item->text)) ||
            !config_address_is_public(span_text(item->text)))
            continue;
        config_problem_error(&store->problems, item->origin,
                             "%s`%s` can be reached from other machines, so a site needs the "
                             "settings tls-certificate and tls-key; only https://localhost works "
                             "without",
                             config_store_label(store, place, item->origin), item->text);
        return;
    }
}

/* RFC 6797 section 6.1: an answer has one such field. */
static void check_hsts(struct config_store *store, const struct config_section_values *site)
{
    const struct config_item *hsts = config_store_first(site, SETTING_hsts_s);
    if (!hsts || strcmp(hsts->text, "off") == 0)
        return;
    for (const struct config_item *item = config_store_first(site, SETTING_headers); item;
         item = item->next) {
        struct span field = SPAN("Strict-Transport-Security:");
        if (span_equal_nocase(span_first(span_text(item->text), field.len), field))
            config_problem_error(&store->problems, item->origin,
                                 "%sthe setting `hsts` sends Strict-Transport-Security; remove "
                                 "one",
                                 config_store_label(store, SETTING_headers, item->origin));
    }
}

void config_tls_verify(struct config_store *store)
{
    bool has_tls = first_tls_address(store, SETTING_listen) != NULL;
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        check_files(store, site);
        check_hsts(store, site);
        check_early_hints(store, site, has_tls);
        if (!has_tls)
            check_site_without_tls(store, site);
    }
    if (!has_tls)
        warn_of_no_effect(store, &store->server, SETTING_http2);
    check_h2c(store);
    check_has_certificate(store, SETTING_listen);
    if (has_tls_page(store))
        check_has_certificate(store, SETTING_stats_listen);
}
