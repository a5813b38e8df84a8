/* SPDX-License-Identifier: MIT
 *
 * What the sessions of the tests share, as a worker has it: a site with three files, a cache, a
 * log, two threads and a clock of the test's own.
 */
#pragma once

#include "session/hosts.h"
#include "session/proxy.h"
#include "session/thread.h"
#include "site/fetch.h"
#include "site/mime.h"
#include "task/task.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND    UINT64_C(1000000000)
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { BIG_SIZE = 300 * 1024, MIDDLE_SIZE = 40 * 1024, SMALL_SIZE = 308 };

static struct {
    char root[64];
    struct site_mime *mime;
    struct site *site;
    struct session_site sites[2]; /* a test may add the second one */
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread thread, other;
    uint64_t now_ns;
} world;

static inline void write_file(const char *name, size_t size, char fill)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    char *content = malloc(size);
    assert_non_null(content);
    memset(content, fill, size);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_true(write(fd, content, size) == (ssize_t)size);
    close(fd);
    free(content);
}

static inline void remove_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    (void)unlink(path);
}

static inline void tick(uint64_t later_ns)
{
    world.now_ns += later_ns;
    session_thread_tick(&world.thread, world.now_ns, 1800000000);
    session_thread_tick(&world.other, world.now_ns, 1800000000);
}

/* Makes the site and all that threads share. A test may change world.shared before start_world. */
static inline int make_world(void)
{
    static const char *const index[] = { "index.html", NULL };
    static const struct site_options options = {
        .name = "test", .root = world.root, .index = index, .body_max = 64 * 1024
    };
    (void)snprintf(world.root, sizeof(world.root), "%s", "/tmp/session_test.XXXXXX");
    if (!mkdtemp(world.root))
        return -1;
    write_file("small.html", SMALL_SIZE, 's');
    write_file("middle.bin", MIDDLE_SIZE, 'm');
    write_file("big.bin", BIG_SIZE, 'b');
    world.mime = site_mime_new(NULL, NULL);
    const char *what;
    if (site_open(&world.site, &options, world.mime, &what) < 0)
        return -1;
    world.sites[0] = (struct session_site){ .site = world.site };
    if (log_access_open(&world.log, "off", NULL, NULL) < 0)
        return -1;
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 << 20, 100, 10 };
    world.shared = (struct session_shared){
        .sites = world.sites,
        .site_count = 1,
        .cache = site_cache_new(limits, 2),
        .log = &world.log,
        .header_timeout_ns = 10 * SECOND,
        .body_timeout_ns = 30 * SECOND,
        .idle_timeout_ns = 60 * SECOND,
        .send_timeout_ns = 20 * SECOND,
        .send_step_bytes = SESSION_SEND_STEP,
    };
    return 0;
}

static inline int start_world(void)
{
    world.shared.hosts = session_hosts_new(world.sites, world.shared.site_count);
    world.now_ns = 1000 * SECOND;
    if (session_thread_start(&world.thread, &world.shared, 0) < 0 ||
        session_thread_start(&world.other, &world.shared, 1) < 0)
        return -1;
    tick(0);
    return 0;
}

static inline int end_world(void)
{
    session_thread_stop(&world.thread);
    session_thread_stop(&world.other);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    remove_file("small.html");
    remove_file("middle.bin");
    remove_file("big.bin");
    return rmdir(world.root);
}

/* Ends world.shared.tasks, and the fetches. No thread may be under way in them. */
static inline void end_tasks(void)
{
    session_thread_rest(&world.thread);
    session_thread_rest(&world.other);
    task_pool_free(world.shared.tasks);
    while (!site_fetch_free(world.shared.fetches))
        usleep(1000);
    session_thread_resume(&world.thread);
    session_thread_resume(&world.other);
    world.shared.tasks = NULL;
    world.shared.fetches = NULL;
}

/* Requests a file until the cache keeps it. A file that changed less than a tick of its clock
 * before it was read is read again later. */
static inline void settle(const char *path)
{
    char request[128];
    (void)snprintf(request, sizeof(request), "HEAD %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    bool fresh = true;
    while (fresh) {
        struct session s;
        struct site_entry *entry;
        tick(SECOND);
        session_open(&s, &world.thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
        assert_int_equal(session_feed(&s, span_text(request), world.now_ns), SESSION_WRITE);
        session_close(&s);
        tick(SECOND);
        assert_int_equal(site_find(world.site, world.thread.reader, span_text(path), world.now_ns,
                                   &entry, &fresh),
                         SITE_FILE);
        if (fresh)
            site_cache_release(&entry->cache);
    }
}

/* References to the entry of a path, the cache's own included. */
static inline unsigned references_of(const char *path)
{
    struct site_entry *entry;
    bool fresh;
    assert_int_equal(
        site_find(world.site, world.thread.reader, span_text(path), world.now_ns, &entry, &fresh),
        SITE_FILE);
    assert_false(fresh);
    return atomic_load(&entry->cache.references);
}

/* A connection from `peer`. */
static inline struct session open_from(struct session_peer peer)
{
    struct session s;
    const struct session_origin origin = {
        .peer = peer,
        .proxied = session_proxy_expects(&world.shared, &peer),
    };
    session_open(&s, &world.thread, origin, world.now_ns);
    return s;
}

static inline struct session open_session(void)
{
    return open_from((struct session_peer){ .family = 4 });
}

static inline unsigned feed_span(struct session *s, struct span bytes)
{
    return session_feed(s, bytes, world.now_ns);
}

static inline unsigned feed(struct session *s, const char *text)
{
    return feed_span(s, span_text(text));
}
