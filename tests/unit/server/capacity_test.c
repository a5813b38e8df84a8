/* SPDX-License-Identifier: MIT
 *
 * How a worker shares its descriptors between connections, open files and itself, and the size of a
 * cache with `cache-size = auto`.
 */
#include "server/capacity.h"

#include "os/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *const listen_at[] = { "127.0.0.1:8080", NULL };
static const struct config_site site;
static const struct config config = { .listen = (const char **)listen_at,
                                      .sites = &site,
                                      .site_count = 1 };

static const struct model *model_named(const char *name)
{
    char why[MODEL_WHY_MAX];
    return model_choose(span_text(name), why);
}

static void connections_and_open_files_together_fit_into_the_limit(void **state)
{
    (void)state;
    for (size_t files = 64; files <= OS_PROCESS_FILES_MAX; files += files / 7)
        for (unsigned threads = 1; threads <= 64; threads *= 4) {
            struct server_capacity each =
                server_capacity_of(&config, model_named("epoll"), threads, files);
            assert_true(each.connections > 0);
            assert_true(each.open_files > 0);
            assert_true(each.cache_files < each.open_files);
            assert_true(each.connections + each.open_files <=
                        files - (files < 96 ? files / 2 : 48));
        }
}

static void the_setting_lowers_the_number_of_connections(void **state)
{
    (void)state;
    struct config limited = config;
    limited.connections = 20;
    assert_int_equal(server_capacity_of(&limited, model_named("epoll"), 1, 1000).connections, 20);
}

static void no_model_has_more_threads_or_processes_than_the_system_allows(void **state)
{
    (void)state;
    static const char *const names[] = { "thread", "fork" };
    for (unsigned i = 0; i < 2; i++) {
        struct server_capacity most =
            server_capacity_of(&config, model_named(names[i]), 1, OS_PROCESS_FILES_MAX);
        assert_int_equal(most.connections, MODEL_PER_CONNECTION_MAX);
    }
}

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

static void an_automatic_cache_is_an_eighth_of_the_memory(void **state)
{
    (void)state;
    assert_int_equal(server_capacity_cache(&config, model_named("epoll"), 8 * GIB), GIB);
    assert_int_equal(server_capacity_cache(&config, NULL, 8 * GIB), GIB);
    assert_int_equal(server_capacity_cache(&config, model_named("percore"), 512 * MIB), 64 * MIB);
    assert_int_equal(server_capacity_cache(&config, NULL, 8 * GIB + 12345), GIB);
}

static void an_automatic_cache_is_neither_too_small_nor_larger_than_the_setting(void **state)
{
    (void)state;
    assert_int_equal(server_capacity_cache(&config, NULL, 0), 4 * MIB);
    assert_int_equal(server_capacity_cache(&config, NULL, 20 * MIB), 4 * MIB);
    assert_int_equal(server_capacity_cache(&config, NULL, UINT64_MAX), 1024 * GIB);
}

static void workers_share_the_memory_of_their_caches(void **state)
{
    (void)state;
    struct config workers = config;
    assert_int_equal(server_capacity_cache(&workers, model_named("prefork"), 8 * GIB), GIB / 4);
    workers.workers = 8;
    assert_int_equal(server_capacity_cache(&workers, model_named("epoll"), 8 * GIB), GIB / 8);
    assert_int_equal(server_capacity_cache(&workers, NULL, 8 * GIB), GIB / 8);
}

static void processes_for_each_connection_have_small_caches(void **state)
{
    (void)state;
    assert_int_equal(server_capacity_cache(&config, model_named("fork"), 64 * GIB), 32 * MIB);
    assert_int_equal(server_capacity_cache(&config, model_named("fork"), GIB), 4 * MIB);
}

/* The start prints this sentence, and so does `weir check --explain`. */
static void the_description_says_what_an_automatic_cache_is_a_share_of(void **state)
{
    (void)state;
    char text[SERVER_CAPACITY_MAX];
    struct config automatic = config;
    automatic.connections = 7;
    automatic.cache_size_bytes = 64 * MIB;
    server_capacity_describe(&automatic, model_named("epoll"), 1, 1, text);
    assert_non_null(strstr(text, "; cache 64M"));
    assert_null(strstr(text, "auto"));
    automatic.cache_memory_bytes = 512 * MIB + 5;
    server_capacity_describe(&automatic, model_named("epoll"), 1, 1, text);
    assert_non_null(strstr(text, "; cache 64M (auto: a share of the 512M of the machine)"));
    automatic.cache_memory_of_group = true;
    server_capacity_describe(&automatic, model_named("epoll"), 2, 1, text);
    assert_non_null(
        strstr(text, "; cache 64M in each (auto: a share of the 512M of the control group)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_and_open_files_together_fit_into_the_limit),
        cmocka_unit_test(the_setting_lowers_the_number_of_connections),
        cmocka_unit_test(no_model_has_more_threads_or_processes_than_the_system_allows),
        cmocka_unit_test(an_automatic_cache_is_an_eighth_of_the_memory),
        cmocka_unit_test(an_automatic_cache_is_neither_too_small_nor_larger_than_the_setting),
        cmocka_unit_test(workers_share_the_memory_of_their_caches),
        cmocka_unit_test(processes_for_each_connection_have_small_caches),
        cmocka_unit_test(the_description_says_what_an_automatic_cache_is_a_share_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
