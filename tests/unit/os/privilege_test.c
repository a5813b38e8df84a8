/* SPDX-License-Identifier: MIT
 *
 * What a process gives up, tried in a child process.
 */
#include "os/landlock.h"
#include "os/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The status with which `run` ends in a child process. */
static int status_of(int (*run)(void))
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(run());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static uint32_t effective(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &header, sets) == 0 ? sets[0].effective | sets[1].effective : 1;
}

static int give_up_all(void)
{
    bool could = (effective() & OS_PRIVILEGE(CAP_SETPCAP)) != 0;
    if (os_privilege_keep(0) < 0 || effective() != 0)
        return 1;
    if (could && prctl(PR_CAPBSET_READ, CAP_KILL) != 0)
        return 2;
    return os_privilege_keep(0) == 0 ? 0 : 3; /* nothing is left to give up */
}

static int give_up_all_but_one(void)
{
    uint32_t before = effective(), one = (uint32_t)OS_PRIVILEGE(CAP_KILL);
    if (os_privilege_keep(one) < 0)
        return 1;
    return effective() == (before & one) ? 0 : 2;
}

/* A process that changes its user loses the right to change the bounding set. */
static int bound_and_become(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() != 0)
        return os_privilege_bound(0) == 0 ? 0 : 1;
    if (os_privilege_bound(0) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return 2;
    return os_privilege_keep(0) == 0 && prctl(PR_CAPBSET_READ, CAP_KILL) == 0 ? 0 : 3;
}

static int forbid_new(void)
{
    return os_privilege_forbid_new() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static void gives_up_every_capability_but_those_that_are_kept(void **state)
{
    (void)state;
    assert_int_equal(status_of(give_up_all), 0);
    assert_int_equal(status_of(give_up_all_but_one), 0);
}

static void the_bounding_set_is_emptied_before_the_change_of_user(void **state)
{
    (void)state;
    assert_int_equal(status_of(bound_and_become), 0);
}

static void forbids_programs_to_gain_privileges(void **state)
{
    (void)state;
    assert_int_equal(status_of(forbid_new), 0);
}

static char folder[] = "/tmp/weir-landlock-XXXXXX";

static int error_of_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error;
}

static int read_one_folder(void)
{
    struct os_landlock rules;
    if (os_privilege_forbid_new() < 0 || os_landlock_begin(&rules) < 0 ||
        os_landlock_allow_reading(&rules, "/etc") < 0 || os_landlock_enforce(&rules) < 0)
        return 1;
    if (error_of_open("/etc/passwd", O_RDONLY) != 0)
        return 2;
    if (error_of_open("/etc/passwd", O_WRONLY) != EACCES)
        return 3;
    if (error_of_open(folder, O_RDONLY | O_DIRECTORY) != EACCES)
        return 4;
    return chdir(folder) < 0 || error_of_open("file", O_WRONLY | O_CREAT) == EACCES ? 0 : 5;
}

static int name_a_missing_folder(void)
{
    struct os_landlock rules;
    if (os_landlock_begin(&rules) < 0)
        return 1;
    int rc = os_landlock_allow_reading(&rules, "/nowhere/at/all");
    os_landlock_drop(&rules);
    return rc == -ENOENT && rules.fd == -1 ? 0 : 2;
}

static void reads_below_the_named_folder_and_nowhere_else(void **state)
{
    (void)state;
    if (os_landlock_level() < 0)
        skip();
    assert_non_null(mkdtemp(folder));
    int status = status_of(read_one_folder);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(status, 0);
    assert_int_equal(status_of(name_a_missing_folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_up_every_capability_but_those_that_are_kept),
        cmocka_unit_test(the_bounding_set_is_emptied_before_the_change_of_user),
        cmocka_unit_test(forbids_programs_to_gain_privileges),
        cmocka_unit_test(reads_below_the_named_folder_and_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
