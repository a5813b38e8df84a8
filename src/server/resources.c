/* SPDX-License-Identifier: MIT */
#include "server/resources.h"

#include "log/error.h"
#include "os/process.h"
#include "rules/rules.h"
#include "server/compression.h"
#include "server/networks.h"
#include "session/fetch.h"
#include "session/hosts.h"
#include "session/ready.h"
#include "site/allocator.h"
#include "site/fetch.h"
#include "site/mime.h"
#include "site/site.h"
#include "task/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The allocator of cached files has an eighth more than the cache. That is for entries that are out
 * of the cache and still in use, and for the gaps between blocks. */
enum { ALLOCATOR_SHARE = 8 };

/* ---- sites ---- */

static const struct span policy = { "Content-Security-Policy", 23 };

static bool rule_has_policy(const struct rules_rule *rule)
{
    for (size_t i = 0; i < rule->field_count; i++)
        if (span_equal_nocase(rule->fields[i].name, policy))
            return true;
    return false;
}

/* Whether the site sends a policy, on any path, which may forbid scripts within pages. */
static bool has_policy(const struct config_site *site)
{
    for (const char *const *header = site->headers; *header; header++)
        if (span_equal_nocase(span_first(span_text(*header), policy.len), policy) &&
            (*header)[policy.len] == ':')
            return true;
    for (unsigned i = 0; site->rules && i < site->rules->count; i++)
        if (rule_has_policy(&site->rules->rule[i]))
            return true;
    return false;
}

/* Whether any folder of the site may be listed. Rules then decide which. */
static bool lists_a_folder(const struct config_site *site)
{
    bool lists = site->listing;
    for (unsigned i = 0; i < site->path_count; i++)
        lists = lists || site->paths[i].path_listing;
    return lists;
}

/* Whether paths of the site have `auth` of their own. Then its rules say which. */
static bool has_passwords_of_paths(const struct config_site *site)
{
    for (unsigned i = 0; i < site->path_count; i++)
        if (site->paths[i].path_auth)
            return true;
    return false;
}

/* Joins the lines of a site. Answers of a site that needs a password are for no shared cache (RFC
 * 9111 section 5.2.2). False: out of memory. */
static bool join_fields(struct session_fields *ret_fields, const struct config_site *from,
                        const char *over_tls)
{
    size_t count = 0;
    while (!from->rules && from->headers[count])
        count++;
    const char **lines = calloc(count + 2, sizeof(*lines));
    if (!lines)
        return false;
    memcpy(lines, from->headers, count * sizeof(*lines));
    if (from->auth && !has_passwords_of_paths(from))
        lines[count] = "Cache-Control: private";
    const bool joined = session_fields_join(ret_fields, lines, over_tls);
    free((void *)lines);
    return joined;
}

/* Whether any page of the site may be in Markdown. Rules then decide which. */
static bool has_markdown(const struct config_site *site)
{
    bool has = site->markdown;
    for (unsigned i = 0; i < site->path_count; i++)
        has = has || site->paths[i].path_markdown;
    return has;
}

static enum site_etag etag_of(const struct config_site *site)
{
    if (strcmp(site->etag, "time") == 0)
        return SITE_ETAG_TIME;
    return strcmp(site->etag, "content") == 0 ? SITE_ETAG_CONTENT : SITE_ETAG_AUTO;
}

/* The table of a site with types of its own. 0 or -ENOMEM. */
static int make_types(struct server_resources *resources, const struct config_site *from,
                      unsigned index)
{
    const char *system = NULL;
    for (const char *const *line = from->types; *line; line++)
        if (strcmp(*line, "system") == 0)
            system = "/etc/mime.types";
    if (!from->types[0])
        return 0;
    resources->own_mime[index] = site_mime_new(from->types, system);
    return resources->own_mime[index] ? 0 : -ENOMEM;
}

static int open_site(struct server_resources *resources, const struct config *config,
                     const struct server_capacity *capacity, unsigned index)
{
    const struct config_site *from = &config->sites[index];
    resources->options[index] = (struct site_options){
        .name = from->name,
        .root = from->root,
        .index = from->index,
        .fallback = from->fallback,
        .error_pages = from->error_pages,
        .error_folders = from->error_folders,
        .listing = lists_a_folder(from),
        .scripts = !has_policy(from),
        .precompressed = from->precompressed,
        .hidden = from->hidden,
        .markdown = has_markdown(from),
        .etag = etag_of(from),
        .rule_files = from->site_rules,
        .body_max = (size_t)config->cache_file_max_bytes,
        .allocator = resources->allocator,
        .fields_max = from->rules ? rules_fields_most(from->rules) : 0,
        .open_files_max = capacity->open_files,
    };
    struct session_site *site = &resources->sites[index];
    char hsts[64];
    (void)snprintf(hsts, sizeof(hsts), "Strict-Transport-Security: max-age=%llu",
                   (unsigned long long)from->hsts_s);
    site->markdown = from->markdown;
    site->rules = from->rules; /* they include the site's own headers */
    if (site->rules)
        site->ready = session_ready_new(site->rules, resources->shared.server_field);
    if (site->rules && !site->ready)
        return -ENOMEM;
    if (!join_fields(&site->fields, from, from->hsts_s != CONFIG_NEVER ? hsts : NULL))
        return -ENOMEM;
    const char *what = from->root;
    int rc = make_types(resources, from, index);
    if (rc < 0)
        return rc;
    const struct site_mime *own = resources->own_mime[index];
    rc = site_open(&site->site, &resources->options[index], own ? own : resources->mime, &what);
    if (rc < 0) {
        log_error(LOG_ERROR, "site %s: cannot open %s: %s", from->name, what, strerror(-rc));
        return rc;
    }
    site->hosts = from->hosts;
    site->early_hints = from->early_hints;
    site->name = from->name;
    site->stats_site =
        resources->shared.stats ? stats_segment_site(resources->shared.stats, from->name) : 0;
    if (site->fields.all.len + site->fields.over_tls.len > SESSION_FIELDS_MAX) {
        log_error(LOG_ERROR, "site %s: its header lines have more than %d bytes together",
                  from->name, SESSION_FIELDS_MAX);
        return -E2BIG;
    }
    resources->shared.site_count = index + 1;
    return 0;
}

static int open_sites(struct server_resources *resources, const struct config *config,
                      const struct server_capacity *capacity)
{
    resources->mime = site_mime_new(NULL, NULL);
    resources->sites = calloc(config->site_count, sizeof(*resources->sites));
    resources->options = calloc(config->site_count, sizeof(*resources->options));
    resources->own_mime = calloc(config->site_count, sizeof(struct site_mime *));
    if (!resources->mime || !resources->own_mime || !resources->sites || !resources->options)
        return -ENOMEM;
    resources->site_count = config->site_count;
    resources->shared.sites = resources->sites;
    int rc = 0;
    for (unsigned i = 0; i < config->site_count && rc == 0; i++)
        rc = open_site(resources, config, capacity, i);
    if (rc < 0)
        return rc;
    resources->shared.hosts = session_hosts_new(resources->sites, resources->shared.site_count);
    return resources->shared.hosts ? 0 : -ENOMEM;
}

static void close_site(struct session_site *site)
{
    session_fields_free(&site->fields);
    session_ready_free(site->ready, site->rules);
}

/* A fetch or a compression that the disk does not answer uses its site to the end of the process.
 * False: a thread of one or of both is left. Every other thread has ended. */
static bool end_tasks(struct server_resources *resources)
{
    task_pool_free(resources->shared.tasks);
    const bool fetched = site_fetch_free(resources->shared.fetches);
    const bool compressed = server_compression_end(resources);
    session_tally_done(&resources->totals);
    return fetched && compressed;
}

void server_resources_close(struct server_resources *resources)
{
    /* So that no checker finds a leak. */
    static __attribute__((used, unused)) struct server_resources kept;
    if (!end_tasks(resources)) { /* all memory stays as it is */
        kept = *resources;
        return;
    }
    server_networks_close(&resources->proxies);
    server_networks_close(&resources->forwarding.trusted);
    site_cache_free(resources->shared.cache);
    session_hosts_free(resources->shared.hosts);
    for (size_t i = 0; i < resources->shared.site_count; i++)
        site_close(resources->sites[i].site);
    for (unsigned i = 0; resources->sites && i < resources->site_count; i++)
        close_site(&resources->sites[i]);
    site_allocator_free(resources->allocator);
    auth_memory_free(resources->guard.memory);
    free(resources->access);
    free(resources->challenges);
    free(resources->options);
    free(resources->sites);
    for (unsigned i = 0; resources->own_mime && i < resources->site_count; i++)
        site_mime_free(resources->own_mime[i]);
    free((void *)resources->own_mime);
    site_mime_free(resources->mime);
}

/* What a client must take within send-timeout. */
static uint32_t send_step_bytes(const struct config *config)
{
    enum { STEP_MAX = 1 << 30 };
    if (config->send_timeout_ns >= CONFIG_FOREVER_NS)
        return SESSION_SEND_STEP;
    double bytes = (double)config->send_rate_bytes * (double)config->send_timeout_ns /
                   (double)DURATION_SECOND;
    if (bytes > STEP_MAX)
        return STEP_MAX;
    return bytes > SESSION_SEND_STEP ? (uint32_t)bytes : SESSION_SEND_STEP;
}

static int open_proxies(struct server_resources *resources, const struct config *config)
{
    struct session_forwarding *forwarding = &resources->forwarding;
    int rc = server_networks_open(&resources->proxies, config->proxy_protocol);
    if (rc == 0)
        rc = server_networks_open(&forwarding->trusted, config->forwarded_from);
    forwarding->standard = strcmp(config->forwarded_field, "forwarded") == 0;
    if (config->proxy_protocol[0])
        resources->shared.proxies = &resources->proxies;
    if (config->forwarded_from[0])
        resources->shared.forwarding = forwarding;
    return rc;
}

int server_resources_open(struct server_resources *resources, const struct config *config,
                          const struct server_capacity *capacity, unsigned readers,
                          struct log_access_sink *access_log, const struct stats_segment *stats)
{
    *resources = (struct server_resources){ 0 };
    struct site_cache_limits limits = {
        .policy = strcmp(config->cache_policy, "lru") == 0 ? SITE_CACHE_LRU : SITE_CACHE_SIEVE,
        .bytes = (size_t)config->cache_size_bytes,
        .entries = (size_t)config->cache_entries,
        .descriptors = capacity->cache_files,
    };
    struct session_shared *shared = &resources->shared;
    const struct task_limits lanes[TASK_LANES] = {
        [TASK_COMPUTES] = { SESSION_CHECKERS, SESSION_CHECKS_MAX },
        [TASK_FETCHES] = { SESSION_FETCHERS, SESSION_FETCHES_MAX },
        [TASK_LISTINGS] = { SESSION_LISTERS, SESSION_FETCHES_MAX },
    };
    if (SITE_ALLOCATOR_IN_USE)
        resources->allocator = site_allocator_new(limits.bytes + limits.bytes / ALLOCATOR_SHARE);
    shared->cache = site_cache_new(limits, readers);
    shared->tasks = task_pool_new(lanes);
    shared->fetches = shared->tasks ? site_fetch_new(shared->tasks, &shared->listings) : NULL;
    shared->log = access_log;
    shared->stats = stats;
    shared->server_field = config->server_header ? SPAN("Server: weir\r\n") : span_of(NULL, 0);
    shared->listings.max = (unsigned)config->listings;
    shared->header_timeout_ns = config->header_timeout_ns;
    shared->body_timeout_ns = config->body_timeout_ns;
    shared->idle_timeout_ns = config->idle_timeout_ns;
    shared->drain_idle_ns = config->drain_idle_ns;
    shared->send_timeout_ns = config->send_timeout_ns;
    shared->send_step_bytes = send_step_bytes(config);
    shared->body_rate_bytes = (uint32_t)config->body_rate_bytes;
    shared->connection_requests = (uint32_t)config->connection_requests;
    shared->slow_ns = config->stats_slow_ns;
    shared->connection_time_ns = config->connection_time_ns;
    shared->h2c = config->h2c;
    shared->http2_streams = (uint32_t)config->http2_streams;
    int rc = shared->cache && shared->fetches ? open_sites(resources, config, capacity) : -ENOMEM;
    if (rc == 0)
        rc = open_proxies(resources, config);
    if (rc == 0)
        session_tally_init(&resources->totals, shared);
    if (rc == -ENOMEM)
        log_error(LOG_ERROR, "not enough memory for a cache of %llu bytes",
                  (unsigned long long)config->cache_size_bytes);
    return rc;
}

void server_resources_use_tls(struct server_resources *resources, const struct config *config,
                              const struct server_tls *tls, uint16_t port)
{
    enum { HTTPS_PORT = 443 };
    resources->shared.tls = tls ? tls->server : NULL;
    port = port > 0 ? port : HTTPS_PORT; /* of a proxy */
    for (unsigned i = 0; i < resources->site_count; i++)
        resources->sites[i].https_port = config->sites[i].https_redirect ? port : 0;
}

/* ---- passwords ---- */

static struct session_access make_access(const struct server_auth *auth, const char *file,
                                         const char *realm, char challenge[SESSION_CHALLENGE_MAX])
{
    const unsigned number = server_auth_find(auth, file);
    return (struct session_access){
        .users = auth->lists[number].users,
        .number = number,
        .challenge = session_access_challenge(challenge, realm),
    };
}

/* Uses up to path_count + 1 elements of `access` and `challenges`. The first one is of the site
 * itself, the others of its paths, by the numbers in their rules. */
static void set_access(struct session_site *site, const struct config_site *from,
                       const struct server_auth *auth, struct session_access *access,
                       char (*challenges)[SESSION_CHALLENGE_MAX])
{
    if (from->auth || has_passwords_of_paths(from))
        site->access = access;
    site->access_by_path = has_passwords_of_paths(from);
    if (from->auth)
        access[0] = make_access(auth, from->auth, from->auth_realm, challenges[0]);
    for (unsigned i = 0; i < from->path_count; i++) {
        const char *file = server_auth_path(from, i), *realm = from->paths[i].path_auth_realm;
        if (file)
            access[i + 1] =
                make_access(auth, file, realm ? realm : from->auth_realm, challenges[i + 1]);
    }
}

int server_resources_use_auth(struct server_resources *resources, const struct config *config,
                              const struct server_auth *auth)
{
    if (auth->count == 0)
        return 0;
    CHECK(config->site_count == resources->site_count);
    struct session_shared *shared = &resources->shared;
    size_t count = 0;
    for (unsigned i = 0; i < config->site_count; i++)
        count += (size_t)config->sites[i].path_count + 1;
    resources->access = calloc(count, sizeof(*resources->access));
    resources->challenges = calloc(count, sizeof(*resources->challenges));
    int rc = auth_memory_new(&resources->guard.memory);
    if (rc == 0 && (!resources->access || !resources->challenges))
        rc = -ENOMEM;
    if (rc < 0) {
        log_error(LOG_ERROR, "cannot prepare the check of passwords: %s", strerror(-rc));
        return rc;
    }
    shared->guard = &resources->guard;
    count = 0;
    for (unsigned i = 0; i < config->site_count; i++) {
        set_access(&resources->sites[i], &config->sites[i], auth, resources->access + count,
                   resources->challenges + count);
        count += (size_t)config->sites[i].path_count + 1;
    }
    return 0;
}

/* ---- the user ---- */

const char *server_resources_user(const char *setting)
{
    static const char *const choices[] = { "weir", "nobody" };
    if (setting || geteuid() != 0)
        return setting;
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct os_process_user user;
        if (os_process_find_user(choices[i], &user) == 0 && user.uid != 0 &&
            os_process_can_become(&user))
            return choices[i];
    }
    return NULL;
}

int server_resources_become(const char *setting)
{
    struct os_process_user user;
    const char *name = server_resources_user(setting);
    if (!name)
        return 0;
    int rc = os_process_find_user(name, &user);
    if (rc == 0 && geteuid() != 0 && user.uid == geteuid())
        return 0; /* a service manager has started this process as that user */
    if (rc == 0)
        rc = os_process_become(&user, name);
    if (rc < 0)
        log_error(LOG_ERROR, "cannot change to user %s: %s", name, strerror(-rc));
    return rc;
}

void server_resources_warn_of_rights(const struct server_resources *resources,
                                     const struct config *config)
{
    for (unsigned i = 0; i < resources->shared.site_count; i++) {
        char user[OS_PROCESS_USER_MAX];
        const struct site_options *options = &resources->options[i];
        if (site_can_read(resources->sites[i].site, config->sites[i].listing))
            continue;
        os_process_user_name(user);
        log_error(LOG_WARNING,
                  "site %s: user %s cannot read %s; give this user the right, or choose another "
                  "user with --user",
                  options->name, user, options->root);
    }
}
