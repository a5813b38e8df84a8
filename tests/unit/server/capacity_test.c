/* SPDX-License-Identifier: MIT
 *
 * How a worker shares its descriptors between connections, open files and itself.
 */
#include "server/capacity.h"

#include "os/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const listen_at[] = { "127.0.0.1:8080", NULL };
static const struct config config = { .listen = (const char **)listen_at, .site_count = 1 };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_and_open_files_together_fit_into_the_limit),
        cmocka_unit_test(the_setting_lowers_the_number_of_connections),
        cmocka_unit_test(no_model_has_more_threads_or_processes_than_the_system_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
