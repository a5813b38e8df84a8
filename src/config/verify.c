/* SPDX-License-Identifier: MIT */
#include "config/verify.h"

#include "config/address.h"
#include "config/auth.h"
#include "config/folder.h"
#include "config/hosts.h"
#include "config/listen.h"
#include "config/log.h"
#include "config/read.h"
#include "config/root.h"
#include "config/store.h"
#include "config/tls.h"
#include "config/types.h"
#include "log/message.h"
#include "rules/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- folders and files ---- */

/* The file of `spa`, of the site or of one of its paths, has to exist at the start. */
static void check_spa(struct config_store *store, const struct config_section_values *site,
                      const struct config_item *item)
{
    const struct config_item *root = config_store_first(site, SETTING_root);
    struct stat info;
    if (!item || !config_root_is_there(store, site, item, SETTING_fallback))
        return;
    const char *path = config_arena_print(&store->arena, "%s/%s", root->text, item->text);
    const char *name = config_store_label(store, SETTING_fallback, item->origin);
    if (stat(path, &info) < 0)
        config_problem_error(&store->problems, item->origin, "%s`%s` cannot be served: %s", name,
                             path, errno == ENOENT ? "there is no such file" : strerror(errno));
    else if (!S_ISREG(info.st_mode))
        config_problem_error(&store->problems, item->origin, "%s`%s` is not a file", name, path);
}

/* Writes the folder of the path `text`, without links, to `out`; false: there is none. */
static bool resolve_parent(struct config_store *store, const char *text, char out[PATH_MAX])
{
    const char *slash = strrchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : 0;
    const char *parent = !slash     ? "."
                         : len == 0 ? "/"
                                    : config_arena_copy(&store->arena, span_of(text, len));
    return realpath(parent, out) != NULL;
}

static bool is_inside(const char *path, const char *folder)
{
    struct span a = span_text(path), b = span_text(folder);
    return span_starts(a, b) && (a.len == b.len || span_ends(b, SPAN("/")) || a.at[b.len] == '/');
}

/* A service manager makes such a folder before the server starts, and removes it afterwards. */
static bool is_made_at_start(const char *path)
{
    const char *name = strncmp(path, "/run/", 5) == 0 ? path + 5 : NULL;
    const char *slash = name ? strchr(name, '/') : NULL;
    return slash && slash > name && !strchr(slash + 1, '/');
}

static void check_written(struct config_store *store, enum config_setting_place place)
{
    const struct config_item *item = config_store_first(&store->server, place);
    char parent[PATH_MAX], root[PATH_MAX];
    struct stat info;
    if (!item || strcmp(item->text, "-") == 0 || strcmp(item->text, "off") == 0)
        return;
    if (place != SETTING_pid_file && log_message_kind(item->text) != LOG_MESSAGE_NONE)
        return;
    const char *name = config_store_label(store, place, item->origin);
    if (stat(item->text, &info) == 0 && S_ISDIR(info.st_mode)) {
        config_problem_error(&store->problems, item->origin,
                             "%s`%s` is a folder; name a file in it", name, item->text);
        return;
    }
    if (!resolve_parent(store, item->text, parent)) {
        if (errno == ENOENT && is_made_at_start(item->text)) {
            config_problem_warning(&store->problems, item->origin,
                                   "%sthe folder of `%s` is not there now; a service manager makes "
                                   "it at the start of the service (RuntimeDirectory)",
                                   name, item->text);
            return;
        }
        config_problem_error(&store->problems, item->origin,
                             "%sthe folder of `%s` cannot be reached: %s", name, item->text,
                             strerror(errno));
        return;
    }
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        const struct config_item *folder = config_store_first(site, SETTING_root);
        if (folder && realpath(folder->text, root) && is_inside(parent, root))
            config_problem_warning(&store->problems, item->origin,
                                   "%s`%s` is inside the root of [site %s], so clients can read it",
                                   name, item->text, site->name);
    }
}

/* ---- sites ---- */

/* Whether `hidden = on` for the paths of `pattern` shows the name. The pattern covers the name, or
 * a file in a folder of that name. */
static bool covers_secret(const char *pattern, const char *name)
{
    struct rules_pattern parsed;
    struct rules_captures captures;
    const char *reason;
    char path[64];
    const int len = snprintf(path, sizeof(path), "/%s/x", name);
    return rules_pattern_parse(span_text(pattern), &parsed, &reason) &&
           (rules_pattern_matches(&parsed, span_of(path, (size_t)len), &captures) ||
            rules_pattern_matches(&parsed, span_of(path, (size_t)len - 2), &captures));
}

/* Warns of secrets that `hidden = on` serves. `pattern`: of a path; NULL: the whole site. */
static void check_hidden(struct config_store *store, const struct config_section_values *site,
                         const struct config_item *hidden, const char *pattern)
{
    static const char *const secret[] = { ".git", ".svn", ".env", ".ssh", ".htpasswd", NULL };
    const struct config_item *root = config_store_first(site, SETTING_root);
    if (!root || !config_store_is_on(hidden))
        return;
    for (const char *const *file = secret; *file; file++) {
        const char *inside = config_arena_print(&store->arena, "%s/%s", root->text, *file);
        if ((!pattern || covers_secret(pattern, *file)) && access(inside, F_OK) == 0)
            config_problem_warning(
                &store->problems, hidden->origin, "%sthis setting also serves %s",
                config_store_label(store, SETTING_hidden, hidden->origin), inside);
    }
}

static void check_listing_is_wise(struct config_store *store,
                                  const struct config_section_values *site)
{
    const struct config_item *listing = config_store_first(site, SETTING_listing);
    if (!config_store_is_on(listing))
        return;
    for (const struct config_item *listen = config_store_first(&store->server, SETTING_listen);
         listen; listen = listen->next) {
        if (!config_address_is_public(span_text(listen->text)))
            continue;
        bool chosen = listing->origin.layer != CONFIG_BY_DEFAULT;
        config_problem_warning(&store->problems, chosen ? listing->origin : listen->origin,
                               "listing is on, and %s is open to other machines: they can see the "
                               "name of every file",
                               listen->text);
        return;
    }
}

static void check_headers(struct config_store *store, const struct config_section_values *site)
{
    const struct config_item *hsts = config_store_first(site, SETTING_hsts_s);
    size_t bytes = hsts && strcmp(hsts->text, "off") != 0 ? CONFIG_HSTS_MAX : 0;
    if (config_store_first(site, SETTING_auth))
        bytes += sizeof("Cache-Control: private\r\n") - 1;
    for (const struct config_item *item = config_store_first(site, SETTING_headers); item;
         item = item->next) {
        bytes += strlen(item->text) + sizeof("\r\n") - 1;
        if (bytes <= CONFIG_HEADERS_MAX)
            continue;
        config_problem_error(
            &store->problems, item->origin, "%sthe header lines of the site are more than %d bytes",
            config_store_label(store, SETTING_headers, item->origin), CONFIG_HEADERS_MAX);
        return;
    }
}

/* nginx separates names with spaces, so a list in its style is one name here. */
static void check_index(struct config_store *store, const struct config_item *item,
                        enum config_setting_place place)
{
    for (; item; item = item->next)
        if (strchr(item->text, ' '))
            config_problem_warning(
                &store->problems, item->origin,
                "%s`%s` is one name with a space; between several names write commas",
                config_store_label(store, place, item->origin), item->text);
}

/* An operator may mean the one address. */
static void check_networks(struct config_store *store, const struct config_section_values *values)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const enum config_kind kind = config_setting_table[i].kind;
        if (kind != CONFIG_NETWORK && kind != CONFIG_PEER && kind != CONFIG_ACCESS)
            continue;
        for (const struct config_item *item = values->items[i]; item; item = item->next)
            if (config_address_has_idle_bits(span_text(item->text)))
                config_problem_warning(
                    &store->problems, item->origin,
                    "%s`%s` covers a whole network; write zeros behind the bits that count, or one "
                    "address without /",
                    config_store_label(store, (enum config_setting_place)i, item->origin),
                    item->text);
    }
}

static void check_site(struct config_store *store, const struct config_section_values *site,
                       const struct config_request *request)
{
    check_headers(store, site);
    config_types_verify(store, site);
    check_listing_is_wise(store, site);
    check_index(store, config_store_first(site, SETTING_index), SETTING_index);
    (void)config_folder_check(store, site, SETTING_error_pages, false);
    if (!config_root_check(store, site, request))
        return;
    check_spa(store, site, config_store_first(site, SETTING_fallback));
    check_hidden(store, site, config_store_first(site, SETTING_hidden), NULL);
    for (const struct config_section_values *path = site->paths; path; path = path->next) {
        const struct config_item *fallback = config_store_first(path, SETTING_path_fallback);
        const struct config_item *rewrite = config_store_first(path, SETTING_rewrite);
        if (fallback && strcmp(fallback->text, "off") != 0)
            check_spa(store, site, fallback);
        if (rewrite)
            (void)config_root_is_there(store, site, rewrite, SETTING_rewrite);
        check_hidden(store, site, config_store_first(path, SETTING_path_hidden), path->name);
        check_index(store, config_store_first(path, SETTING_path_index), SETTING_path_index);
        check_networks(store, path);
        (void)config_folder_check(store, path, SETTING_path_error_pages, false);
    }
}

/* ---- the server ---- */

/* 0, 0s, 00ms ... */
static bool is_zero(const char *duration)
{
    return duration[0] == '0' && !strpbrk(duration, "123456789");
}

static void check_timeouts(struct config_store *store)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->kind != CONFIG_TIMEOUT && i != SETTING_drain_timeout_ns)
            continue;
        const struct config_item *item =
            config_store_first(&store->server, (enum config_setting_place)i);
        if (!item || !is_zero(item->text))
            continue;
        config_problem_warning(
            &store->problems, item->origin, "%s%s",
            config_store_label(store, (enum config_setting_place)i, item->origin),
            setting->kind == CONFIG_DELAY
                ? "with 0, a stop or reload cuts off the answers under way"
                : "with 0 there is no limit: clients that send nothing keep their "
                  "connections open");
    }
}

/* Plain HTTP/1.1 sends a file without reading it, which is cheaper above this size than a copy from
 * memory. TLS and HTTP/2 read a file piece by piece for every answer. */
static uint64_t choose_body_size(const struct config *config)
{
    enum { SENT_AS_FILE = 64 << 10, READ_FOR_EACH_ANSWER = 1 << 20 };
    bool reads = config->h2c;
    for (const char *const *address = config->listen; *address; address++)
        reads = reads || config_address_is_tls(span_text(*address));
    uint64_t most = config->cache_size_bytes / 16; /* a cached answer has a head, too */
    if (!reads || most < SENT_AS_FILE)
        return SENT_AS_FILE;
    return most < READ_FOR_EACH_ANSWER ? most : READ_FOR_EACH_ANSWER;
}

/* Gives `cache-size` and `cache-entries` their numbers, if they are `auto`. */
static void size_cache(struct config *config, const struct config_request *request)
{
    enum { ENTRY_BYTES = 2048, ENTRIES_LEAST = 1 << 16, ENTRIES_MOST = 1 << 20 };
    if (config->cache_size_bytes == CONFIG_AUTO) {
        config->cache_size_bytes = CONFIG_CACHE_BYTES;
        if (request->size_cache)
            request->size_cache(config);
    }
    if (config->cache_entries > 0)
        return;
    const uint64_t entries = config->cache_size_bytes / ENTRY_BYTES;
    config->cache_entries = entries < ENTRIES_LEAST  ? ENTRIES_LEAST
                            : entries > ENTRIES_MOST ? ENTRIES_MOST
                                                     : (unsigned)entries;
}

static void check_cache(struct config_store *store, const struct config_request *request)
{
    size_cache(&store->config, request);
    if (store->config.cache_file_max_bytes == CONFIG_AUTO)
        store->config.cache_file_max_bytes = choose_body_size(&store->config);
    const struct config *config = &store->config;
    const struct config_item *item =
        config_store_first(&store->server, SETTING_cache_file_max_bytes);
    uint64_t share = config->cache_size_bytes / 8; /* most bytes of one cached answer */
    if (!item || item->origin.layer == CONFIG_BY_DEFAULT || config->cache_size_bytes == 0 ||
        config->cache_file_max_bytes <= share)
        return;
    config_problem_warning(&store->problems, item->origin,
                           "%sone answer can use at most an eighth of cache-size, here %llu bytes",
                           config_store_label(store, SETTING_cache_file_max_bytes, item->origin),
                           (unsigned long long)share);
}

/* Whether there is such a user, and whether this process can become it, is checked by the caller of
 * config_read, because that needs the name service. */
static void check_user(struct config_store *store)
{
    const struct config_item *item = config_store_first(&store->server, SETTING_user);
    if (item && strcmp(item->text, "root") == 0)
        config_problem_warning(&store->problems, item->origin,
                               "%s`root` is the superuser; a user for weir alone is safer",
                               config_store_label(store, SETTING_user, item->origin));
}

/* A request for a host that no site names gets 421. */
static void check_hosts(struct config_store *store)
{
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        if (!config_store_first(site, SETTING_hosts))
            return;
    if (store->sites && store->problems.error_count == 0)
        config_problem_warning(&store->problems, store->sites->origin,
                               "every site has a `host`, so a request for any other host, or for "
                               "the address itself, gets 421; a site without `host` would answer "
                               "it");
}

static void check_congestion(struct config_store *store)
{
    const struct config_item *item = config_store_first(&store->server, SETTING_congestion);
    FILE *file = item ? fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "re") : NULL;
    char words[512];
    if (!file)
        return;
    bool read = fgets(words, sizeof(words), file) != NULL;
    fclose(file);
    if (!read)
        return;
    words[strcspn(words, "\n")] = 0;
    struct span rest = span_text(words);
    while (rest.len > 0) {
        struct span word = span_first(rest, strcspn(rest.at, " "));
        if (span_equal(word, span_text(item->text)))
            return;
        rest = span_trim(span_skip(rest, word.len));
    }
    config_problem_warning(
        &store->problems, item->origin, "%sthe kernel has not loaded `%s`; it has %s",
        config_store_label(store, SETTING_congestion, item->origin), item->text, words);
}

static void check_page(struct config_store *store)
{
    const struct config_item *first = config_store_first(&store->server, SETTING_stats_listen);
    const struct config_item *password = config_store_first(&store->server, SETTING_stats_password);
    if (!config_store_is_on(config_store_first(&store->server, SETTING_stats)))
        return;
    for (const struct config_item *item = first; item; item = item->next) {
        const char *name = config_store_label(store, SETTING_stats_listen, item->origin);
        if (strcmp(item->text, "off") == 0 && (item != first || item->next))
            config_problem_error(&store->problems, item->origin,
                                 "%s`off` and an address exclude each other; remove one", name);
        else if (config_listen_has(store, item))
            config_problem_error(
                &store->problems, item->origin,
                "%s`%s` is an address of `listen`, or overlaps one; the statistics "
                "page needs one of its own: set stats-listen",
                name, item->text);
        else if (strcmp(item->text, "off") != 0 && !password &&
                 config_address_is_public(span_text(item->text)))
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` can be reached from other machines, so it needs a "
                                 "stats-password (`weir password` makes one); or write 127.0.0.1",
                                 name, item->text);
    }
}

/* Every client may then write the address that the logs and limits use. */
static void check_trust(struct config_store *store, enum config_setting_place place)
{
    for (const struct config_item *item = config_store_first(&store->server, place); item;
         item = item->next)
        if (span_ends(span_text(item->text), SPAN("/0")))
            config_problem_warning(&store->problems, item->origin,
                                   "%s`%s` is every address, so any client can claim to be any "
                                   "other; write the addresses of the proxies",
                                   config_store_label(store, place, item->origin), item->text);
}

/* A field that no address may write has no effect. */
static void check_forwarding(struct config_store *store)
{
    const struct config_item *field = config_store_first(&store->server, SETTING_forwarded_field);
    check_trust(store, SETTING_proxy_protocol);
    check_trust(store, SETTING_forwarded_from);
    if (field && field->origin.layer != CONFIG_BY_DEFAULT &&
        !config_store_first(&store->server, SETTING_forwarded_from))
        config_problem_warning(&store->problems, field->origin,
                               "%sthis has no effect without `forwarded-from`, which names the "
                               "proxies",
                               config_store_label(store, SETTING_forwarded_field, field->origin));
}

void config_verify(struct config_store *store, const struct config_request *request)
{
    config_hosts_verify(store);
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        check_site(store, site, request);
    if (!store->sites && store->problems.error_count == 0) {
        struct config_origin origin = { CONFIG_BY_FILE, request->file, 0 };
        config_problem_error(&store->problems, origin,
                             "there is nothing to serve; add a section [site NAME] with a `root`");
    }
    check_written(store, SETTING_access_log);
    check_written(store, SETTING_error_log);
    check_written(store, SETTING_pid_file);
    check_timeouts(store);
    check_cache(store, request);
    check_user(store);
    check_congestion(store);
    config_listen_verify(store);
    check_page(store);
    check_forwarding(store);
    check_networks(store, &store->server);
    config_tls_verify(store);
    config_auth_verify(store);
    config_log_verify(store);
    check_hosts(store);
}
