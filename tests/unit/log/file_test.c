/* SPDX-License-Identifier: MIT
 *
 * Which entries of a folder a log may be, and which may have been planted by another user. The
 * cases with other users need root.
 */
#include "log/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKER = 12345, STRANGER = 23456 }; /* user ids */

static char folder[] = P_tmpdir "/weir-file-XXXXXX";
static char text[2][sizeof(folder) + 64];
static struct log_file_opening opening;

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[sizeof(folder) + 16];
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command); /* NOLINT(cert-env33-c): the name is the test's own */
}

/* Empties the folder, which belongs to this user again. */
static int empty_folder(void **state)
{
    opening = (struct log_file_opening){ .user = WORKER };
    return remove_folder(state) == 0 && mkdir(folder, 0700) == 0 ? 0 : -1;
}

/* A path below the folder; two are valid at a time. */
static const char *below(const char *name)
{
    static unsigned turn;
    char *path = text[turn++ % 2];
    (void)snprintf(path, sizeof(text[0]), "%s/%s", folder, name);
    return path;
}

static void make_file(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void assert_opens(const char *path)
{
    const int fd = log_file_open(path, &opening);
    if (fd < 0)
        fail_msg("%s: %s", path, opening.why);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND | O_NONBLOCK);
    assert_int_equal(close(fd), 0);
}

static void assert_refused(const char *path, int error, const char *why)
{
    assert_int_equal(log_file_open(path, &opening), error);
    assert_non_null(strstr(opening.why, why));
}

static bool is_root(void)
{
    if (geteuid() != 0)
        print_message("skipped: only root can make files of other users\n");
    return geteuid() == 0;
}

static void makes_a_file_that_others_cannot_read(void **state)
{
    (void)state;
    struct stat made;
    assert_opens(below("a.log"));
    assert_opens(below("a.log"));
    assert_int_equal(stat(below("a.log"), &made), 0);
    assert_int_equal(made.st_mode & 07777 & ~0640U, 0);
}

static void opens_devices_pipes_and_descriptors_of_this_process(void **state)
{
    (void)state;
    char path[32];
    assert_opens("/dev/null");
    assert_int_equal(mkfifo(below("pipe"), 0600), 0);
    assert_int_equal(log_file_open(below("pipe"), NULL), -ENXIO); /* no reader, and no wait */
    const int reader = open(below("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_opens(below("pipe"));
    assert_int_equal(close(reader), 0);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(null, F_SETFD, 0), 0); /* as one that the shell has passed */
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", null);
    assert_opens(path);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", null);
    assert_opens(path);
    assert_int_equal(fcntl(null, F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(log_file_open(path, &opening), -EPERM);
    assert_non_null(strstr(opening.why, "of the server itself"));
    assert_int_equal(close(null), 0);
    const int saved = dup(STDOUT_FILENO),
              file = open(below("out"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (void)fflush(stdout);
    const bool moved = dup2(file, STDOUT_FILENO) == STDOUT_FILENO;
    const int out = log_file_open("/dev/stdout", &opening);
    const bool restored = dup2(saved, STDOUT_FILENO) == STDOUT_FILENO;
    assert_true(moved && restored && out >= 0);
    assert_int_equal(close(out) + close(saved) + close(file), 0);
}

static void says_why_a_path_cannot_be_opened(void **state)
{
    (void)state;
    char longest[PATH_MAX + 1];
    memset(longest, 'a', PATH_MAX);
    longest[PATH_MAX] = '\0';
    assert_refused(longest, -ENAMETOOLONG, "too long");
    assert_refused(below("none/a.log"), -ENOENT, "No such file");
    make_file(below("file"));
    assert_refused(below("file/a.log"), -ENOTDIR, "Not a directory");
    assert_int_equal(mkdir(below("folder"), 0700), 0);
    assert_refused(below("folder"), -EISDIR, "Is a directory");
    assert_refused(below("folder/"), -ENOENT, "No such file");
}

static void follows_no_link_to_the_file(void **state)
{
    (void)state;
    make_file(below("target"));
    assert_int_equal(symlink("target", below("a.log")), 0);
    assert_refused(below("a.log"), -ELOOP, "it is a link; name the file itself");
    assert_int_equal(symlink("missing", below("b.log")), 0);
    assert_refused(below("b.log"), -ELOOP, "link");
    assert_int_equal(access(below("missing"), F_OK), -1);
}

static void follows_links_to_folders_that_the_operator_has_made(void **state)
{
    (void)state;
    assert_int_equal(mkdir(below("real"), 0700), 0);
    assert_int_equal(symlink("./real//.", below("one")), 0);
    assert_int_equal(symlink(below("one/../one"), below("two")), 0);
    assert_opens(below("two/a.log"));
    assert_int_equal(access(below("real/a.log"), F_OK), 0);
    assert_int_equal(symlink("loop", below("loop")), 0);
    assert_refused(below("loop/a.log"), -ELOOP, "Too many");
    assert_int_equal(chdir(folder), 0);
    assert_opens("one/b.log");
    assert_opens("c.log");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(access(below("c.log"), F_OK), 0);
}

static void accepts_any_owner_where_only_root_can_write(void **state)
{
    (void)state;
    if (!is_root())
        return;
    make_file(below("a.log"));
    assert_int_equal(chown(below("a.log"), STRANGER, STRANGER), 0);
    assert_int_equal(link(below("a.log"), below("b.log")), 0);
    assert_opens(below("a.log"));
}

/* The folder belongs to the workers' user, or anybody can write to it. */
static void refuses_what_another_user_may_have_planted(void **state)
{
    if (!is_root())
        return;
    static const struct {
        uid_t owner;
        mode_t mode;
    } shared[] = { { WORKER, 0755 }, { STRANGER, 0700 }, { 0, 01777 }, { 0, 0775 }, { 0, 0757 } };
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        assert_int_equal(empty_folder(state), 0);
        assert_int_equal(mkdir(below("real"), 0700), 0);
        assert_int_equal(symlink("real", below("ours")), 0);
        assert_int_equal(symlink("real", below("theirs")), 0);
        assert_int_equal(lchown(below("theirs"), WORKER, WORKER), 0);
        make_file(below("secret"));
        assert_int_equal(link(below("secret"), below("hard.log")), 0);
        make_file(below("theirs.log"));
        assert_int_equal(chown(below("theirs.log"), STRANGER, STRANGER), 0);
        make_file(below("workers.log"));
        assert_int_equal(chown(below("workers.log"), WORKER, WORKER), 0);
        assert_int_equal(symlink("secret", below("link.log")), 0);
        assert_int_equal(mkfifo(below("pipe"), 0600), 0);
        const int reader = open(below("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        assert_int_equal(chown(below("pipe"), STRANGER, STRANGER), 0);
        assert_int_equal(chown(folder, shared[i].owner, 0), 0);
        assert_int_equal(chmod(folder, shared[i].mode), 0);

        assert_refused(below("link.log"), -ELOOP, "link");
        assert_refused(below("hard.log"), -EPERM, "hard link");
        assert_refused(below("theirs.log"), -EPERM, "user id 23456");
        if (reader >= 0) /* the kernel may refuse it first (fs.protected_fifos) */
            assert_true(log_file_open(below("pipe"), &opening) < 0);
        assert_refused(below("theirs/a.log"), -EPERM, "folder of its path is a link");
        assert_opens(below("ours/a.log"));
        assert_opens(below("workers.log"));
        assert_opens(below("new.log"));
        assert_opens(below("new.log"));
        opening.user = LOG_FILE_NO_USER;
        assert_refused(below("workers.log"), -EPERM, "user id 12345");
        assert_int_equal(close(reader), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(makes_a_file_that_others_cannot_read, empty_folder),
        cmocka_unit_test_setup(opens_devices_pipes_and_descriptors_of_this_process, empty_folder),
        cmocka_unit_test_setup(says_why_a_path_cannot_be_opened, empty_folder),
        cmocka_unit_test_setup(follows_no_link_to_the_file, empty_folder),
        cmocka_unit_test_setup(follows_links_to_folders_that_the_operator_has_made, empty_folder),
        cmocka_unit_test_setup(accepts_any_owner_where_only_root_can_write, empty_folder),
        cmocka_unit_test_setup(refuses_what_another_user_may_have_planted, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
