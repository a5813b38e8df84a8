/* SPDX-License-Identifier: MIT
 *
 * A small site in a temporary folder, and one thread of sessions that serves it, for the targets
 * that fuzz whole connections. A secret lies outside the root. small_site_begin makes everything
 * once; the process removes it when it ends, however it ends.
 */
#pragma once

#include "base/check.h"
#include "log/layout.h"
#include "session/hosts.h"
#include "session/thread.h"
#include "site/mime.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "only outside the root"
#define NOW_NS UINT64_C(1000000000000)

static struct {
    char top[32];
    struct site_mime *mime;
    struct site_options options;
    struct session_site site;
    struct log_layout layout;
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread worker;
} world = { .top = "/tmp/weir-fuzz-XXXXXX" };

static const char *const index_names[] = { "index.html", NULL };
static const char *const no_hosts[] = { NULL };

static const char *const folders[] = { "site", "site/d", "site/sub", "site/.git" };
static const struct {
    const char *name, *text;
    size_t size; /* extended to this size with zeros */
} files[] = {
    { "secret.txt", SECRET, 0 },
    { "site/index.html", "<!doctype html>", 0 },
    { "site/hello.txt", "hello\n", 0 },
    { "site/empty.txt", "", 0 },
    { "site/d/hello.txt", "hello from d\n", 0 },
    { "site/sub/index.html", "sub\n", 0 },
    { "site/.git/config", SECRET, 0 },
    { "site/page.html", "plain\n", 0 },
    { "site/page.html.gz", "gzip\n", 0 },
    { "site/page.html.br", "br\n", 0 },
    { "site/f.bin", "0123456789", 1000 },
    { "site/big.bin", "big", 100000 },
};

static char *below(const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", world.top, name) >= 0);
    return path;
}

static void make_files(void)
{
    CHECK(mkdtemp(world.top));
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char *path = below(folders[i]);
        CHECK(mkdir(path, 0700) == 0);
        free(path);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = below(files[i].name);
        FILE *out = fopen(path, "we");
        CHECK(out && fputs(files[i].text, out) >= 0);
        CHECK(fflush(out) == 0);
        CHECK(files[i].size == 0 || ftruncate(fileno(out), (off_t)files[i].size) == 0);
        const struct timespec times[2] = { { .tv_sec = 784111777 }, { .tv_sec = 784111777 } };
        CHECK(futimens(fileno(out), times) == 0);
        CHECK(fclose(out) == 0);
        free(path);
    }
    char *link = below("site/link_out");
    CHECK(symlink("../secret.txt", link) == 0);
    free(link);
}

static void remove_files(void)
{
    char *link = below("site/link_out");
    (void)unlink(link);
    free(link);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = below(files[i].name);
        (void)unlink(path);
        free(path);
    }
    for (size_t i = sizeof(folders) / sizeof(*folders); i > 0; i--) {
        char *path = below(folders[i - 1]);
        (void)rmdir(path);
        free(path);
    }
    (void)rmdir(world.top);
}

/* Removes the files when this process ends, however it ends. Another process waits for that. */
static void remove_files_at_end(void)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) {
        (void)close(ends[0]);
        return; /* the other end stays open until this process ends */
    }
    (void)close(ends[1]);
    (void)setsid(); /* an interrupt from the terminal does not reach this process */
    char byte;
    (void)!read(ends[0], &byte, 1);
    remove_files();
    _exit(0);
}

static void end_world(void)
{
    session_thread_stop(&world.worker);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    char *root = (char *)(uintptr_t)world.options.root;
    free(root);
}

static inline void small_site_begin(void)
{
    if (world.mime)
        return;
    make_files();
    remove_files_at_end();
    world.mime = site_mime_new(NULL, NULL);
    world.options = (struct site_options){
        .name = "fuzz",
        .root = below("site"),
        .index = index_names,
        .listing = true,
        .precompressed = true,
        .body_max = 10000,
    };
    const char *what;
    CHECK(world.mime && site_open(&world.site.site, &world.options, world.mime, &what) == 0);
    world.site.hosts = no_hosts;
    const struct log_layout_request json = { .format = SPAN("json") };
    char why[LOG_LAYOUT_WHY_MAX];
    CHECK(log_layout_make(&world.layout, &json, why));
    CHECK(log_access_open(&world.log, "/dev/null", &world.layout, NULL) == 0);
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 60000, 16, 4 };
    world.shared = (struct session_shared){
        .sites = &world.site,
        .site_count = 1,
        .hosts = session_hosts_new(&world.site, 1),
        .cache = site_cache_new(limits, 1),
        .log = &world.log,
        .server_field = SPAN("Server: weir\r\n"),
        .header_timeout_ns = 1000000000,
        .body_timeout_ns = 1000000000,
        .idle_timeout_ns = 1000000000,
        .send_timeout_ns = 1000000000,
    };
    CHECK(world.shared.hosts && world.shared.cache);
    CHECK(session_thread_start(&world.worker, &world.shared, 0) == 0);
    CHECK(atexit(end_world) == 0);
}
