/* SPDX-License-Identifier: MIT
 *
 * A site over a folder of its own, a cache before it, and a time that passes
 * only when a test says so. The one loop that waits for the real clock lets a
 * file become older than a tick of it.
 */
#pragma once

#include "site/listing.h"
#include "site/mime.h"
#include "site/query.h"
#include "tree.h"

#include <sys/resource.h>
#include <time.h>

#define SECOND_NS   INT64_C(1000000000)
#define LONG_AGO_NS (INT64_C(1000000000) * SECOND_NS) /* 2001-09-09T01:46:40Z */

enum { BODY_MAX = 1000, CACHE_BYTES = 1024 * 1024 };

struct fixture {
    struct tree tree; /* "root" is served; "errors" and "secret" are beside it */
    struct site_options options;
    struct site_mime *mime;
    struct site *site;
    struct site_cache *cache;
    struct site_cache_reader *reader;
    uint64_t now_ns;
};

static const char *const index_names[] = { "index.html", "index.txt", NULL };

static inline void open_cache(struct fixture *f, size_t bytes)
{
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, bytes, 100, 50 };
    f->cache = site_cache_new(limits, 1);
    assert_non_null(f->cache);
    f->reader = site_cache_reader(f->cache, 0);
}

static inline void close_cache(struct fixture *f)
{
    site_cache_offline(f->reader);
    site_cache_free(f->cache);
}

/* Opens the site with changed options, and an empty cache of the first size. */
static inline void reopen(struct fixture *f)
{
    const char *what;
    close_cache(f);
    open_cache(f, CACHE_BYTES);
    site_close(f->site);
    assert_int_equal(site_open(&f->site, &f->options, f->mime, &what), 0);
}

static inline int set_up(void **state)
{
    static struct fixture fixture;
    static char root[PATH_MAX], errors[PATH_MAX];
    struct fixture *f = &fixture;

    *f = (struct fixture){ .now_ns = 1000 * SECOND_NS };
    tree_make(&f->tree);
    tree_folder(&f->tree, "root");
    tree_folder(&f->tree, "errors");
    tree_write(&f->tree, "secret", "a secret");
    (void)snprintf(root, sizeof(root), "%s/root", f->tree.path);
    (void)snprintf(errors, sizeof(errors), "%s/errors", f->tree.path);
    f->options = (struct site_options){
        .name = "test",
        .root = root,
        .index = index_names,
        .error_pages = errors,
        .precompressed = true,
        .body_max = BODY_MAX,
    };
    f->mime = site_mime_new(NULL, NULL);
    assert_non_null(f->mime);
    open_cache(f, CACHE_BYTES);
    reopen(f);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    close_cache(f);
    site_close(f->site);
    site_mime_free(f->mime);
    tree_remove(&f->tree);
    return 0;
}

/* The lookups beside site_find, as a thread makes them that may wait for the disk. */

static inline enum site_result find_query(const struct fixture *f, struct site_query query,
                                          struct site_entry **ret_entry, bool *ret_new)
{
    return site_find_query(f->site, f->reader, &query, f->now_ns, SITE_MAY_WAIT, ret_entry,
                           ret_new);
}

static inline enum site_result find_as(const struct fixture *f, struct span key, struct span path,
                                       struct site_entry **ret_entry, bool *ret_new)
{
    return find_query(f, (struct site_query){ .kind = SITE_QUERY_PATH, .path = path, .key = key },
                      ret_entry, ret_new);
}

static inline enum site_result find_fallback(const struct fixture *f, struct span key,
                                             struct site_entry **ret_entry, bool *ret_new)
{
    const char *path = site_view(f->site)->fallback;
    const struct site_query query = {
        .kind = SITE_QUERY_FALLBACK,
        .path = span_text(path != NULL ? path : ""),
        .key = key,
    };
    return find_query(f, query, ret_entry, ret_new);
}

static inline enum site_result find_error_page(const struct fixture *f, unsigned folder,
                                               unsigned status, struct site_entry **ret_entry,
                                               bool *ret_new)
{
    char key[SITE_QUERY_ERROR_PAGE_MAX];
    struct site_query query;
    if (!site_query_error_page(f->site, folder, status, key, &query))
        return SITE_ABSENT;
    return find_query(f, query, ret_entry, ret_new);
}

static inline enum site_result query_listing(const struct fixture *f,
                                             const struct site_listing_request *request,
                                             bool may_render, struct site_entry **ret_entry,
                                             bool *ret_new)
{
    char key[PATH_MAX];
    struct site_query query;
    if (!site_query_listing(request, may_render, key, sizeof(key), &query))
        return SITE_ABSENT;
    return find_query(f, query, ret_entry, ret_new);
}

/* Lets so much time pass that the disk is asked again. */
static inline void pass_time(struct fixture *f)
{
    site_cache_quiesce(f->reader);
    f->now_ns += SITE_FRESH_NS;
}

static inline enum site_result result_of(struct fixture *f, struct span path)
{
    struct site_entry *entry;
    bool is_new;
    enum site_result result = site_find(f->site, f->reader, path, f->now_ns, &entry, &is_new);
    if (result == SITE_FILE && is_new)
        site_cache_release(&entry->cache);
    return result;
}

/* The entry for a file that is there, published when it is new; the cache alone
 * holds it. */
static inline struct site_entry *find(struct fixture *f, const char *path, bool *ret_new)
{
    struct site_entry *entry = NULL;
    enum site_result result =
        site_find(f->site, f->reader, span_text(path), f->now_ns, &entry, ret_new);
    if (result != SITE_FILE)
        fail_msg("%s: result %d", path, (int)result);
    if (*ret_new) {
        site_publish(f->reader, &entry);
        assert_int_equal(entry->cache.state, SITE_CACHE_RESIDENT);
        site_cache_release(&entry->cache);
    }
    return entry;
}

static inline struct site_entry *find_file(struct fixture *f, const char *path)
{
    bool is_new;
    return find(f, path, &is_new);
}

/* Looks again and again until the file's last change is further back than a tick
 * of the clock, so that its entry is kept. */
static inline struct site_entry *find_settled(struct fixture *f, const char *path)
{
    struct timespec start, now;
    bool is_new = true;
    struct site_entry *entry = NULL;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &start), 0);
    while (is_new) {
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
        assert_true(now.tv_sec - start.tv_sec < 20);
        pass_time(f);
        entry = find(f, path, &is_new);
    }
    return entry;
}

static inline void assert_span_is(struct span s, const char *text)
{
    if (!span_equal(s, span_text(text)))
        fail_msg("\"%.*s\", not \"%s\"", (int)s.len, s.at, text);
}

static inline void assert_body_is(const struct site_entry *entry, const char *text)
{
    const struct site_file *file = entry->plain;
    assert_non_null(site_file_body(file));
    assert_span_is(span_of(site_file_body(file), file->size), text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
