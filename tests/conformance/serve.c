/* SPDX-License-Identifier: MIT
 *
 * Opens the sites of the cases without a server (serve.h).
 */
#include "serve.h"

#include "config/config.h"
#include "config/read.h"
#include "rules/rules.h"
#include "session/fetch.h"
#include "session/hosts.h"
#include "session/ready.h"
#include "site/mime.h"
#include "support/secure.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SERVER_FIELD SPAN("Server: weir\r\n")

static const char *const index_names[] = { "index.html", NULL };

/* The sites that README.md lists. The first one answers all other names. */
static const struct {
    const char *hosts[2];
    const char *folder; /* below the fixture's top */
    const char *fallback;
    const char *fields[4];
    bool listing, own_pages, hidden;
    unsigned ruled; /* the number of the site in rules.conf, from 1; 0: it is not there */
} sites[SERVE_SITES] = {
    { .hosts = { NULL }, .folder = "site" },
    { .hosts = { "list.test" }, .folder = "site", .listing = true },
    { .hosts = { "spa.test" }, .folder = "site", .fallback = "index.html" },
    { .hosts = { "pages.test" },
      .folder = "site",
      .fields = { "X-Frame-Options: DENY", "Cache-Control: max-age=31536000, immutable" },
      .own_pages = true },
    { .hosts = { "open.test" }, .folder = "site", .hidden = true },
    { .hosts = { "*.wild.test" }, .folder = "site/d" },
    { .hosts = { "one.wild.test" }, .folder = "site/sub" },
    { .hosts = { "rules.test" }, .folder = "site", .fallback = "index.html", .ruled = 1 },
    { .hosts = { "staff.test" }, .folder = "site", .ruled = 2 },
};

static char *below(const char *folder, const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", folder, name) >= 0);
    return path;
}

/* Reads rules.conf, and the users that it names. -1 after a message. */
static int read_rules(struct serve *serve, const struct fixture *fixture)
{
    char why[AUTH_WHY_MAX] = "";
    serve->rules_path = below(fixture->top, "rules.conf");
    const struct config_request request = { .file = serve->rules_path };
    serve->rules = config_read(&request);
    if (config_read_errors(serve->rules) > 0) {
        config_read_print_problems(serve->rules, CONFIG_PROBLEMS_SHOWN, stderr);
        return -1;
    }
    if (server_auth_open(&serve->auth, config_read_result(serve->rules), why) == 0 &&
        auth_memory_new(&serve->guard.memory) == 0)
        return 0;
    (void)fprintf(stderr, "%s\n", why);
    return -1;
}

static void add_access(struct serve *serve, const char *file, const char *realm)
{
    const unsigned number = server_auth_find(&serve->auth, file), at = serve->accesses;
    serve->access[at] = (struct session_access){
        .users = serve->auth.lists[number].users,
        .number = number,
        .challenge = session_access_challenge(serve->challenges[at], realm),
    };
}

/* The passwords of a site, and then those of its paths, by their numbers. */
static void set_access(struct serve *serve, struct session_site *site,
                       const struct config_site *from)
{
    site->access = &serve->access[serve->accesses];
    for (unsigned i = 0; i <= from->path_count; i++) {
        const unsigned path = i == 0 ? from->path_count : i - 1;
        const char *file = server_auth_path(from, path);
        CHECK(serve->accesses < SERVE_ACCESSES);
        if (file)
            add_access(serve, file, i == 0 ? from->auth_realm : from->paths[path].path_auth_realm);
        site->access_by_path |= i > 0 && file;
        serve->accesses++;
    }
}

void serve_forget(struct session_thread *worker)
{
    struct session_guard *guard = worker->shared->guard;
    auth_memory_free(guard->memory);
    CHECK(auth_memory_new(&guard->memory) == 0);
}

static void use_rules(struct serve *serve, unsigned i, const struct config_site *from)
{
    struct session_site *site = &serve->sites[i];
    set_access(serve, site, from);
    if (!from->rules)
        return;
    site->rules = from->rules;
    serve->options[i].fields_max = rules_fields_most(from->rules);
    serve->options[i].listing = true; /* in some of its folders */
    serve->options[i].markdown = true;
    site->ready = session_ready_new(from->rules, SERVER_FIELD);
    CHECK(site->ready);
}

static int open_site(struct serve *serve, const struct fixture *fixture, unsigned i,
                     size_t body_max)
{
    serve->paths[i] = below(fixture->top, sites[i].folder);
    serve->options[i] = (struct site_options){
        .name = sites[i].hosts[0] ? sites[i].hosts[0] : "default",
        .root = serve->paths[i],
        .index = index_names,
        .fallback = sites[i].fallback,
        .error_pages = sites[i].own_pages ? serve->errors : NULL,
        .listing = sites[i].listing,
        .precompressed = true,
        .hidden = sites[i].hidden,
        .body_max = body_max,
    };
    if (sites[i].ruled > 0)
        use_rules(serve, i, &config_read_result(serve->rules)->sites[sites[i].ruled - 1]);
    const char *what = NULL;
    int result = site_open(&serve->sites[i].site, &serve->options[i], serve->mime, &what);
    if (result != 0) {
        (void)fprintf(stderr, "site %s: %s: %s\n", serve->options[i].name, what, strerror(-result));
        return -1;
    }
    serve->sites[i].hosts = sites[i].hosts;
    return session_fields_join(&serve->sites[i].fields, sites[i].fields, NULL) ? 0 : -1;
}

static struct tls_server *open_tls(const struct fixture *fixture)
{
    /* Those of all sites but the first, which answers all other names. */
    static const char *const names[] = {
        "a",           "list.test",     "spa.test",        "pages.test", "open.test",
        "*.wild.test", "*.y.wild.test", "*.one.wild.test", "rules.test", "staff.test",
        NULL
    };
    char *folder = below(fixture->top, "tls");
    struct tls_server *server = secure_server(folder, names, NULL);
    free(folder);
    return server;
}

/* Other threads compare passwords, and read what the kernel does not have in memory of open files,
 * as in the models with event loops. */
static void use_tasks(struct serve *serve)
{
    const struct task_limits lanes[TASK_LANES] = {
        [TASK_COMPUTES] = { SESSION_CHECKERS, SESSION_CHECKS_MAX },
        [TASK_FETCHES] = { SESSION_FETCHERS, SESSION_FETCHES_MAX },
    };
    serve->home.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    serve->shared.tasks = task_pool_new(lanes);
    CHECK(serve->home.wake_fd >= 0 && serve->shared.tasks);
    session_thread_use_home(&serve->worker, &serve->home);
}

int serve_start(struct serve *serve, const struct fixture *fixture, size_t cache_bytes,
                size_t body_max)
{
    *serve = (struct serve){ .log.fd = -1 };
    serve->errors = below(fixture->top, "errors");
    serve->log_path = below(fixture->top, "access.log");
    serve->mime = site_mime_new(NULL, NULL);
    CHECK(serve->mime);
    if (read_rules(serve, fixture) != 0)
        return -1;
    for (unsigned i = 0; i < SERVE_SITES; i++)
        if (open_site(serve, fixture, i, body_max) != 0)
            return -1;
    struct site_cache_limits limits = {
        .policy = SITE_CACHE_SIEVE, .bytes = cache_bytes, .entries = 1000, .descriptors = 100
    };
    if (log_access_open(&serve->log, serve->log_path, NULL, NULL) != 0) {
        perror(serve->log_path);
        return -1;
    }
    serve->shared = (struct session_shared){
        .sites = serve->sites,
        .site_count = SERVE_SITES,
        .hosts = session_hosts_new(serve->sites, SERVE_SITES),
        .cache = site_cache_new(limits, 1),
        .log = &serve->log,
        .server_field = SERVER_FIELD,
        .guard = &serve->guard,
        .header_timeout_ns = UINT64_C(10000000000),
        .body_timeout_ns = UINT64_C(20000000000),
        .idle_timeout_ns = UINT64_C(30000000000),
        .send_timeout_ns = UINT64_C(40000000000),
    };
    CHECK(serve->shared.hosts && serve->shared.cache);
    serve->shared.tls = open_tls(fixture);
    if (!serve->shared.tls)
        return -1;
    CHECK(session_thread_start(&serve->worker, &serve->shared, 0) == 0);
    if (cache_bytes > 0)
        use_tasks(serve);
    return 0;
}

void serve_stop(struct serve *serve)
{
    if (serve->worker.shared)
        session_thread_stop(&serve->worker);
    if (serve->shared.tasks) {
        task_pool_free(serve->shared.tasks);
        CHECK(close(serve->home.wake_fd) == 0);
    }
    if (serve->shared.tls)
        tls_server_free(serve->shared.tls);
    site_cache_free(serve->shared.cache);
    session_hosts_free(serve->shared.hosts);
    if (serve->shared.log)
        log_access_close(&serve->log);
    for (unsigned i = 0; i < SERVE_SITES; i++) {
        if (serve->sites[i].site)
            site_close(serve->sites[i].site);
        session_fields_free(&serve->sites[i].fields);
        session_ready_free(serve->sites[i].ready, serve->sites[i].rules);
        free(serve->paths[i]);
    }
    auth_memory_free(serve->guard.memory);
    server_auth_close(&serve->auth);
    config_read_free(serve->rules); /* the ready answers borrow its rules */
    free(serve->rules_path);
    site_mime_free(serve->mime);
    free(serve->errors);
    free(serve->log_path);
    *serve = (struct serve){ .log.fd = -1 };
}

size_t serve_log_lines(struct serve *serve)
{
    log_access_flush(serve->worker.log);
    FILE *in = fopen(serve->log_path, "re");
    CHECK(in);
    size_t lines = 0;
    for (int c = fgetc(in); c != EOF; c = fgetc(in))
        lines += c == '\n';
    (void)fclose(in);
    return lines;
}
