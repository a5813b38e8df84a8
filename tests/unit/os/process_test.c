/* SPDX-License-Identifier: MIT
 *
 * The limit of open files. The functions of the C library that read and change it are defined here.
 */
#include "os/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

static struct rlimit files;

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    assert_int_equal(resource, RLIMIT_NOFILE);
    *limit = files;
    return 0;
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    assert_int_equal(resource, RLIMIT_NOFILE);
    files = *limit;
    return 0;
}

static void raises_the_soft_limit_to_the_hard_limit(void **state)
{
    (void)state;
    files = (struct rlimit){ 1024, 5000 };
    assert_int_equal(os_process_raise_files(), 5000);
    assert_int_equal(files.rlim_cur, 5000);
    assert_int_equal(files.rlim_max, 5000);
}

static void does_not_use_a_huge_limit(void **state)
{
    (void)state;
    files = (struct rlimit){ 1024, 1073741816 };
    assert_int_equal(os_process_raise_files(), OS_PROCESS_FILES_MAX);
    assert_int_equal(files.rlim_cur, OS_PROCESS_FILES_MAX);
    files = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
    assert_int_equal(os_process_raise_files(), OS_PROCESS_FILES_MAX);
    assert_int_equal(files.rlim_cur, OS_PROCESS_FILES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raises_the_soft_limit_to_the_hard_limit),
        cmocka_unit_test(does_not_use_a_huge_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
