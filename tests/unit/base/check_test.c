/* SPDX-License-Identifier: MIT
 *
 * CHECK in a child process, since it does not come back.
 */
#include "base/check.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void does_nothing_on_a_true_condition(void **state)
{
    (void)state;
    int evaluated = 0;
    CHECK(++evaluated == 1);
    assert_int_equal(evaluated, 1);
}

static void names_the_place_and_aborts_on_a_false_condition(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = { 0, 0 };
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        CHECK(1 + 1 == 3);
        _exit(0);
    }
    close(ends[1]);

    char text[512] = { 0 };
    size_t len = 0;
    ssize_t got;
    while (len < sizeof(text) - 1 && (got = read(ends[0], text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)got;
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "check_test.c:"));
    assert_non_null(strstr(text, "1 + 1 == 3\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_nothing_on_a_true_condition),
        cmocka_unit_test(names_the_place_and_aborts_on_a_false_condition),
    };
    return cmocka_run_group_tests_name("base/check", tests, NULL, NULL);
}
