/* SPDX-License-Identifier: MIT
 *
 * The limit of open files, and the kernel's table of them. The functions of the C library that read
 * and change the limit are defined here.
 */
#include "os/process.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

/* The size of the kernel's table of open files. */
static unsigned table_size(void)
{
    char line[256];
    unsigned size = 0;
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    while (size == 0 && fgets(line, sizeof(line), status))
        (void)sscanf(line, "FDSize: %u", &size);
    assert_int_equal(fclose(status), 0);
    return size;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    assert_int_equal(closedir(folder), 0);
    return count;
}

static void reserves_space_for_files_and_keeps_none_open(void **state)
{
    (void)state;
    const unsigned before = open_files();
    os_process_reserve_files(0);
    assert_true(table_size() < 900);
    os_process_reserve_files(900);
    assert_in_range(table_size(), 900, 1024);
    assert_int_equal(open_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raises_the_soft_limit_to_the_hard_limit),
        cmocka_unit_test(does_not_use_a_huge_limit),
        cmocka_unit_test(reserves_space_for_files_and_keeps_none_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
