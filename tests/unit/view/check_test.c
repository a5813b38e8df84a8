/* SPDX-License-Identifier: MIT
 *
 * The line for monitoring: its state, and that no text of the server can end it early.
 */
#include "view/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct stats_snapshot snapshot;
static struct stats_site site;
static struct view view;
static char *line;

static int make_healthy_server(void **state)
{
    (void)state;
    memset(&snapshot, 0, sizeof(snapshot));
    snapshot.running = true;
    snapshot.master = 100;
    snapshot.state = STATS_SERVING;
    snapshot.site_count = 1;
    snapshot.site = &site;
    snapshot.generation = 1;
    snapshot.generations[1] = (struct stats_generation){ .number = 1, .model = "epoll" };
    strcpy(snapshot.generations[1].urls, "http://127.0.0.1:8080/\nunix:/run/a|b");
    view = (struct view){ .snapshot = &snapshot,
                          .usage = { .files_most = 10, .files_limit = 100, .cpus = 8 },
                          .read_ns = 200 * SECOND,
                          .read_s = 1000000 };
    return 0;
}

static int free_line(void **state)
{
    (void)state;
    free(line);
    line = NULL;
    return 0;
}

static enum view_check_state print_line(void)
{
    size_t len = 0;
    FILE *out = open_memstream(&line, &len);
    assert_non_null(out);
    enum view_check_state state = view_check_print(&view, out);
    assert_int_equal(fclose(out), 0);
    assert_ptr_equal(strchr(line, '\n'), line + len - 1);
    return state;
}

static void a_server_without_verdicts_is_ok(void **state)
{
    (void)state;
    assert_int_equal(print_line(), VIEW_CHECK_OK);
    assert_memory_equal(line, "WEIR OK - serving http://127.0.0.1:8080/ unix:/run/a/b, ", 55);
    assert_ptr_equal(strchr(line, '|'), strrchr(line, '|'));
}

static void a_server_that_does_not_serve_is_critical(void **state)
{
    (void)state;
    snapshot.state = STATS_STARTING;
    assert_int_equal(print_line(), VIEW_CHECK_CRITICAL);
    assert_non_null(strstr(line, "WEIR CRITICAL - starting"));
}

static void a_warning_is_a_warning(void **state)
{
    (void)state;
    view.heartbeat_age_ns = 6 * SECOND;
    assert_int_equal(print_line(), VIEW_CHECK_WARNING);
    assert_non_null(strstr(line, "WEIR WARNING - the last heartbeat"));
}

static void the_gravest_verdict_decides(void **state)
{
    (void)state;
    view.heartbeat_age_ns = 60 * SECOND;
    snapshot.reloaded_s = 1;
    snapshot.reload_failed = true;
    assert_int_equal(print_line(), VIEW_CHECK_CRITICAL);
    assert_non_null(strstr(line, "WEIR CRITICAL - the last heartbeat"));
    assert_non_null(strstr(line, "`weir stats` shows 1 more |"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_without_verdicts_is_ok, make_healthy_server,
                                        free_line),
        cmocka_unit_test_setup_teardown(a_server_that_does_not_serve_is_critical,
                                        make_healthy_server, free_line),
        cmocka_unit_test_setup_teardown(a_warning_is_a_warning, make_healthy_server, free_line),
        cmocka_unit_test_setup_teardown(the_gravest_verdict_decides, make_healthy_server,
                                        free_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
