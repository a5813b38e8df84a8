/* SPDX-License-Identifier: MIT
 *
 * The end of the resources of a worker, with a thread that does not end.
 */
#include "server/resources.h"

#include "model/model.h"
#include "server/capacity.h"
#include "server/compression.h"
#include "site/site.h"
#include "tree.h"

#include <pthread.h>
#include <semaphore.h>

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

static void a_site_stays_while_a_thread_compresses(void **state)
{
    (void)state;
    struct tree tree;
    tree_make(&tree);
    const struct config_site site = { .name = "a",
                                      .hosts = none,
                                      .root = tree.path,
                                      .index = index_names,
                                      .types = none,
                                      .headers = none,
                                      .etag = "auto",
                                      .compress = true,
                                      .hsts_s = CONFIG_NEVER };
    const struct config config = { .listen = listen_at,
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
    struct log_access_sink log;
    struct server_resources resources;
    open_resources(&resources, &config, &log);
    slow.site = resources.sites[0].site;
    assert_int_equal(sem_init(&slow.closed, 0, 0), 0);
    assert_int_equal(sem_init(&slow.over, 0, 0), 0);
    assert_int_equal(pthread_create(&resources.compressing, NULL, use_site_late, NULL), 0);
    resources.compresses = true;

    server_resources_close(&resources);
    assert_int_equal(sem_post(&slow.closed), 0);
    assert_int_equal(sem_wait(&slow.over), 0);
    assert_true(slow.can_read);
    log_access_close(&log);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_site_stays_while_a_thread_compresses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
