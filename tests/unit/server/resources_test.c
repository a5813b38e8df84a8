/* SPDX-License-Identifier: MIT
 *
 * The end of the resources of a worker, with a thread that does not end.
 */
#include "server/resources.h"

#include "model/model.h"
#include "server/capacity.h"
#include "server/compression.h"
#include "site/compressor.h"
#include "site/fetching.h"
#include "site/site.h"
#include "tree.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { FILES = 1024 };

static const char *const none[] = { NULL };
static const char *const index_names[] = { "index.html", NULL };
static const char *const listen_at[] = { "127.0.0.1:8080", NULL };

/* In the place of the compressor's thread: a piece takes until the resources are closed. */
static struct slow_thread {
    const struct site *site;
    sem_t closed, over;
    bool can_read; /* afterwards */
} slow;

static void *use_site_late(void *unused)
{
    (void)unused;
    assert_int_equal(sem_wait(&slow.closed), 0);
    slow.can_read = site_can_read(slow.site, true);
    assert_int_equal(sem_post(&slow.over), 0);
    return NULL;
}

static void open_resources(struct server_resources *resources, const struct config *config,
                           struct log_access_sink *log)
{
    char why[MODEL_WHY_MAX];
    const struct model *model = model_choose(SPAN("epoll"), why);
    struct server_capacity capacity = server_capacity_of(config, model, 1, FILES);
    assert_int_equal(log_access_open(log, "off", NULL, NULL), 0);
    assert_int_equal(server_resources_open(resources, config, &capacity, 1, log, NULL), 0);
    assert_int_equal(server_compression_begin(resources, config, model, true), 0);
    assert_non_null(resources->shared.compressor);
}

/* Opens resources with one site, in `tree`, which compresses. */
static void open_site(struct tree *tree, struct server_resources *resources,
                      struct log_access_sink *log)
{
    static struct config_site site;
    static struct config config;
    tree_make(tree);
    site = (struct config_site){ .name = "a",
                                 .hosts = none,
                                 .root = tree->path,
                                 .index = index_names,
                                 .types = none,
                                 .headers = none,
                                 .etag = "auto",
                                 .compress = true,
                                 .hsts_s = CONFIG_NEVER };
    config = (struct config){ .listen = listen_at,
                              .cache_policy = "sieve",
                              .cache_size_bytes = 1 << 20,
                              .cache_entries = 64,
                              .cache_file_max_bytes = 4096,
                              .compress_cpu = 25,
                              .listings = 1,
                              .proxy_protocol = none,
                              .forwarded_from = none,
                              .forwarded_field = "x-forwarded-for",
                              .sites = &site,
                              .site_count = 1 };
    open_resources(resources, &config, log);
}

static void start_thread(struct server_resources *resources, void *(*run)(void *), void *context)
{
    assert_int_equal(pthread_create(&resources->compressing, NULL, run, context), 0);
    resources->compresses = true;
}

static void a_site_stays_while_a_thread_compresses(void **state)
{
    (void)state;
    struct tree tree;
    struct log_access_sink log;
    static struct server_resources resources; /* a checker of leaks finds what is left */
    open_site(&tree, &resources, &log);
    slow.site = resources.sites[0].site;
    assert_int_equal(sem_init(&slow.closed, 0, 0), 0);
    assert_int_equal(sem_init(&slow.over, 0, 0), 0);
    start_thread(&resources, use_site_late, NULL);

    server_resources_close(&resources);
    assert_int_equal(sem_post(&slow.closed), 0);
    assert_int_equal(sem_wait(&slow.over), 0);
    assert_true(slow.can_read);
    log_access_close(&log);
    tree_remove(&tree);
}

static atomic_bool compressor_has_ended;

static void *wait_for_the_stop(void *compressor)
{
    while (site_compressor_work(compressor))
        continue;
    atomic_store(&compressor_has_ended, true);
    return NULL;
}

/* A task that the pool has taken stands for a fetch that the disk does not answer. */
static void a_fetch_that_does_not_end_leaves_no_other_thread(void **state)
{
    (void)state;
    struct tree tree;
    struct log_access_sink log;
    static struct server_resources resources; /* a checker of leaks finds what is left */
    open_site(&tree, &resources, &log);
    const struct site *site = resources.sites[0].site;
    atomic_fetch_add(&resources.shared.fetches->tasks, 1);
    start_thread(&resources, wait_for_the_stop, resources.shared.compressor);

    server_resources_close(&resources);
    assert_true(atomic_load(&compressor_has_ended));
    assert_true(site_can_read(site, true));
    log_access_close(&log);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_stays_while_a_thread_compresses),
        cmocka_unit_test(a_fetch_that_does_not_end_leaves_no_other_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
