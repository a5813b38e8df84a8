/* SPDX-License-Identifier: MIT
 *
 * The runtime folder: its path, and when it is trusted.
 */
#include "server/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/place_test.XXXXXX";

static void runtime_directory_wins_over_the_other_folders(void **state)
{
    (void)state;
    char text[SERVER_RUNTIME_MAX], own[64], expected[64];
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("RUNTIME_DIRECTORY", "/run/one", 1);
    assert_int_equal(server_runtime_folder(text), 0);
    assert_string_equal(text, "/run/one");
    setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
    assert_int_equal(server_runtime_folder(text), 0);
    assert_string_equal(text, "/run/one");

    unsetenv("RUNTIME_DIRECTORY");
    snprintf(own, sizeof(own), "%s/weir", folder);
    assert_int_equal(server_runtime_folder(text), 0);
    assert_string_equal(text, geteuid() == 0 ? "/run/weir" : own);

    setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
    snprintf(expected, sizeof(expected), "/tmp/weir-%u", (unsigned)geteuid());
    assert_int_equal(server_runtime_folder(text), 0);
    assert_string_equal(text, geteuid() == 0 ? "/run/weir" : expected);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char text[SERVER_RUNTIME_MAX], name[SERVER_RUNTIME_MAX + 1];
    memset(name, 'x', sizeof(name) - 1);
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    setenv("RUNTIME_DIRECTORY", name, 1);
    assert_int_equal(server_runtime_folder(text), -ENAMETOOLONG);
    name[SERVER_RUNTIME_MAX - 1] = '\0';
    assert_int_equal(server_runtime_socket(name, 1, text), -ENAMETOOLONG);
    unsetenv("RUNTIME_DIRECTORY");
}

static void trusts_only_a_private_folder_of_this_user(void **state)
{
    (void)state;
    char own[64], link[64], file[64];
    snprintf(own, sizeof(own), "%s/own", folder);
    snprintf(link, sizeof(link), "%s/link", folder);
    snprintf(file, sizeof(file), "%s/file", folder);
    assert_int_equal(server_runtime_check(own), -ENOENT);
    assert_int_equal(server_runtime_make(own), 0);
    assert_int_equal(server_runtime_make(own), 0);
    assert_int_equal(chmod(own, 0777), 0);
    assert_int_equal(server_runtime_make(own), -EPERM);
    assert_int_equal(chmod(own, 0750), 0);
    assert_int_equal(server_runtime_check(own), 0);
    assert_int_equal(symlink("own", link), 0);
    assert_int_equal(server_runtime_make(link), -EPERM);
    assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
    assert_int_equal(server_runtime_make(file), -ENOTDIR);
    unlink(file);
    unlink(link);
    rmdir(own);
}

static void lists_only_sockets_that_a_process_listens_on(void **state)
{
    (void)state;
    static const char *const names[] = { "x.sock", ".sock", "12", "-1.sock", "99999999999.sock" };
    char file[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, names[i]);
        assert_int_equal(mknod(file, S_IFREG | 0600, 0), 0);
    }
    assert_int_equal(server_runtime_list(folder, NULL, 0), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, names[i]);
        assert_int_equal(unlink(file), 0); /* it was left alone */
    }
    assert_int_equal(server_runtime_list("/nowhere", NULL, 0), -ENOENT);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runtime_directory_wins_over_the_other_folders),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(trusts_only_a_private_folder_of_this_user),
        cmocka_unit_test(lists_only_sockets_that_a_process_listens_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
