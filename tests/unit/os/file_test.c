/* SPDX-License-Identifier: MIT
 *
 * Opening a file below a root, once with openat2 and once with the walk that
 * replaces it. The table has the difference: links that stay inside.
 */
#include "os/file.h"

#include "tree.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

struct roots {
    struct tree tree;
    int fd; /* the folder "root" in the tree; "outside" is beside it */
};

static int set_up(void **state)
{
    static struct roots roots;
    struct tree *tree = &roots.tree;

    tree_make(tree);
    tree_folder(tree, "root");
    tree_folder(tree, "root/folder");
    tree_folder(tree, "root/folder/deeper");
    tree_write(tree, "root/file", "inside");
    tree_write(tree, "root/folder/deeper/file", "deep inside");
    tree_write(tree, "outside", "a secret");
    tree_link(tree, "root/to_file", "file");
    tree_link(tree, "root/to_folder", "folder");
    tree_link(tree, "root/folder/up_and_back", "../file");
    tree_link(tree, "root/out", "../outside");
    tree_link(tree, "root/out_folder", "..");
    tree_link(tree, "root/absolute", "/etc/passwd");
    tree_link(tree, "root/self", "self");
    tree_link(tree, "root/dead", "nowhere");
    roots.fd = os_file_open_directory(tree_absolute(tree, "root"));
    assert_true(roots.fd >= 0);
    *state = &roots;
    return 0;
}

static int tear_down(void **state)
{
    struct roots *roots = *state;
    (void)os_file_force_walk(false);
    os_file_close(roots->fd);
    tree_remove(&roots->tree);
    return 0;
}

/* The content of the file at `path`, "" for another type, or the error. */
static int read_beneath(int root_fd, const char *path, char text[32])
{
    struct stat status;

    int fd = os_file_open_beneath(root_fd, path);
    if (fd < 0)
        return fd;
    assert_int_equal(os_file_stat(fd, &status), 0);
    memset(text, 0, 32);
    if (S_ISREG(status.st_mode)) {
        assert_true(status.st_size < 32);
        assert_int_equal(os_file_read_at(fd, text, (size_t)status.st_size, 0), 0);
    }
    os_file_close(fd);
    return 0;
}

static void opens_only_files_below_the_root(void **state)
{
    static const struct {
        const char *path;
        int error, walk_error;
        const char *text;
    } cases[] = {
        { "file", 0, 0, "inside" },
        { "folder/deeper/file", 0, 0, "deep inside" },
        { "folder//deeper/./file", 0, 0, "deep inside" },
        { ".", 0, 0, "" },
        { "folder", 0, 0, "" },
        { "folder/", 0, 0, "" },
        { "to_file", 0, -ELOOP, "inside" },
        { "to_folder/deeper/file", 0, -ELOOP, "deep inside" },
        { "to_folder/", 0, -ELOOP, "" },
        { "folder/up_and_back", 0, -ELOOP, "inside" },
        { "", -ENOENT, -ENOENT, NULL },
        { "nothing", -ENOENT, -ENOENT, NULL },
        { "nothing/file", -ENOENT, -ENOENT, NULL },
        { "file/", -ENOTDIR, -ENOTDIR, NULL },
        { "file/file", -ENOTDIR, -ENOTDIR, NULL },
        { "dead", -ENOENT, -ELOOP, NULL },
        { "self", -ELOOP, -ELOOP, NULL },
        { "out", -EXDEV, -ELOOP, NULL },
        { "out_folder/outside", -EXDEV, -ELOOP, NULL },
        { "out_folder/", -EXDEV, -ELOOP, NULL },
        { "absolute", -EXDEV, -ELOOP, NULL },
        { "..", -EXDEV, -EXDEV, NULL },
        { "../outside", -EXDEV, -EXDEV, NULL },
        { "folder/../../outside", -EXDEV, -EXDEV, NULL },
        { "/etc/passwd", -EXDEV, -EXDEV, NULL },
    };
    const struct roots *roots = *state;
    char text[32];

    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            int expected = walk == 1 ? cases[i].walk_error : cases[i].error;
            int error = read_beneath(roots->fd, cases[i].path, text);
            if (error != expected)
                fail_msg("%s (walk %d): %d, not %d", cases[i].path, walk, error, expected);
            if (error == 0)
                assert_string_equal(text, cases[i].text);
        }
    }
}

static void refuses_magic_links(void **state)
{
    (void)state;
    int proc_fd = os_file_open_directory("/proc");
    assert_true(proc_fd >= 0);
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        char path[64];
        (void)snprintf(path, sizeof(path), "%d/root/etc/passwd", (int)getpid());
        assert_int_equal(os_file_open_beneath(proc_fd, path), -ELOOP);
        (void)snprintf(path, sizeof(path), "%d/cwd", (int)getpid());
        assert_int_equal(os_file_peek_beneath(proc_fd, path), -ELOOP);
    }
    os_file_close(proc_fd);
}

static void refuses_names_that_are_too_long(void **state)
{
    const struct roots *roots = *state;
    char *path = malloc(2 * PATH_MAX);
    assert_non_null(path);
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        memset(path, 'a', NAME_MAX + 1);
        path[NAME_MAX + 1] = '\0';
        assert_int_equal(os_file_open_beneath(roots->fd, path), -ENAMETOOLONG);
        for (int i = 0; i < PATH_MAX; i++)
            memcpy(path + (ptrdiff_t)2 * i, "./", 2);
        path[2 * PATH_MAX - 1] = '\0';
        assert_int_equal(os_file_open_beneath(roots->fd, path), -ENAMETOOLONG);
        path[PATH_MAX - 1] = '\0';
        assert_int_equal(read_beneath(roots->fd, path, path + PATH_MAX), 0);
    }
    free(path);
}

static void opens_a_fifo_without_waiting(void **state)
{
    const struct roots *roots = *state;
    char text[32];

    assert_int_equal(mkfifoat(roots->fd, "fifo", 0644), 0);
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        (void)alarm(10); /* ends the test if it blocks */
        assert_int_equal(read_beneath(roots->fd, "fifo", text), 0);
        (void)alarm(0);
    }
}

static void refuses_a_socket(void **state)
{
    const struct roots *roots = *state;
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/root/socket",
                   roots->tree.path);
    int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(socket_fd >= 0);
    assert_int_equal(bind(socket_fd, (struct sockaddr *)&address, sizeof(address)), 0);
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        assert_int_equal(os_file_open_beneath(roots->fd, "socket"), -ENXIO);
    }
    os_file_close(socket_fd);
}

static void peeks_without_permission_to_read(void **state)
{
    const struct roots *roots = *state;
    const uid_t user = geteuid();
    struct stat status;

    assert_int_equal(fchmodat(roots->fd, "folder", 0311, 0), 0);
    assert_int_equal(fchmodat(roots->tree.fd, ".", 0755, 0), 0);
    if (user == 0)
        assert_int_equal(seteuid(65534), 0); /* root may read everything */
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        int fd = os_file_peek_beneath(roots->fd, "folder");
        int error = os_file_open_beneath(roots->fd, "folder");
        bool peeked = fd >= 0 && os_file_stat(fd, &status) == 0 && S_ISDIR(status.st_mode);
        os_file_close(fd);
        if (walk == 1 && user == 0)
            assert_int_equal(seteuid(0), 0);
        assert_true(peeked);
        assert_int_equal(error, -EACCES);
    }
    assert_int_equal(fchmodat(roots->fd, "folder", 0755, 0), 0);
}

static void every_descriptor_is_closed_on_exec(void **state)
{
    const struct roots *roots = *state;

    assert_int_equal(fcntl(roots->fd, F_GETFD), FD_CLOEXEC);
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        int fd = os_file_open_beneath(roots->fd, "file");
        int peek_fd = os_file_peek_beneath(roots->fd, "file");
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(fcntl(peek_fd, F_GETFD), FD_CLOEXEC);
        os_file_close(fd);
        os_file_close(peek_fd);
    }
}

static void leaks_no_descriptor(void **state)
{
    static const char *const paths[] = {
        "file",         "folder/deeper/file",    "out",
        "out_folder/x", "to_folder/deeper/file", "folder/deeper/no",
        "../x"
    };
    const struct roots *roots = *state;

    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        int before = dup(roots->fd);
        os_file_close(before);
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
            os_file_close(os_file_open_beneath(roots->fd, paths[i]));
        int after = dup(roots->fd); /* the lowest free number again */
        os_file_close(after);
        assert_int_equal(after, before);
    }
}

static void reports_a_lack_of_descriptors(void **state)
{
    const struct roots *roots = *state;
    struct rlimit limit, none;

    int lowest_free = dup(roots->fd);
    os_file_close(lowest_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)lowest_free;
    for (int walk = 0; walk <= 1; walk++) {
        (void)os_file_force_walk(walk == 1);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        int error = os_file_open_beneath(roots->fd, "folder/deeper/file");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(error, -EMFILE);
    }
}

static void reads_exactly_the_range_or_fails(void **state)
{
    const struct roots *roots = *state;
    char text[8] = "";

    int fd = os_file_open_beneath(roots->fd, "file"); /* "inside" */
    assert_true(fd >= 0);
    assert_int_equal(os_file_read_at(fd, text, 4, 2), 0);
    assert_string_equal(text, "side");
    assert_int_equal(os_file_read_at(fd, text, 0, 6), 0);
    assert_int_equal(os_file_read_at(fd, text, 7, 0), -ENODATA);
    assert_int_equal(os_file_read_at(fd, text, 1, 6), -ENODATA);
    os_file_close(fd);
    assert_int_equal(os_file_read_at(-1, text, 1, 0), -EBADF);
}

static void stats_a_link_and_not_its_target(void **state)
{
    const struct roots *roots = *state;
    struct stat status;

    assert_int_equal(os_file_stat_at(roots->fd, "out", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(os_file_stat_at(roots->fd, "nothing", &status), -ENOENT);
    assert_int_equal(os_file_stat(-1, &status), -EBADF);
}

/* The fields that both fill in. */
static void assert_same_file(const struct stat *a, const struct stat *b)
{
    assert_int_equal(a->st_dev, b->st_dev);
    assert_int_equal(a->st_ino, b->st_ino);
    assert_int_equal(a->st_mode, b->st_mode);
    assert_int_equal(a->st_nlink, b->st_nlink);
    assert_int_equal(a->st_uid, b->st_uid);
    assert_int_equal(a->st_gid, b->st_gid);
    assert_int_equal(a->st_size, b->st_size);
    assert_memory_equal(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim));
    assert_memory_equal(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim));
}

static void knows_a_file_in_memory_without_a_question(void **state)
{
    struct roots *roots = *state;
    struct stat asked, remembered;
    const char *path = tree_absolute(&roots->tree, "root/to_file"); /* a link is followed */

    const int fd = os_file_open_beneath(roots->fd, "file");
    assert_int_equal(os_file_stat(fd, &asked), 0);
    assert_int_equal(os_file_stat_cached(fd, &remembered), 0);
    assert_same_file(&asked, &remembered);
    assert_int_equal(os_file_stat_path(AT_FDCWD, path, &asked), 0);
    assert_int_equal(os_file_stat_remembered(path, &remembered), 0);
    assert_same_file(&asked, &remembered);
    assert_int_equal(os_file_stat_cached(-1, &remembered), -EBADF);
    os_file_close(fd);
}

static void opens_only_directories_as_roots(void **state)
{
    const struct roots *roots = *state;

    assert_int_equal(os_file_open_directory(tree_absolute(&roots->tree, "root/file")), -ENOTDIR);
    assert_int_equal(os_file_open_directory(tree_absolute(&roots->tree, "nothing")), -ENOENT);
}

static void only_a_file_that_this_user_could_write_may_be_written(void **state)
{
    (void)state;
    assert_int_equal(os_file_may_write("/dev/null"), 0);
    assert_int_equal(os_file_may_write("/tmp/weir-no-such-file"), 0);
    assert_int_equal(os_file_may_write("weir-no-such-file"), access(".", W_OK) == 0 ? 0 : -EACCES);
    assert_int_equal(os_file_may_write("/tmp/weir-no-such-folder/file"), -ENOENT);
    assert_int_equal(os_file_may_write("/tmp/weir-no-such-folder/"), -ENOENT);
    assert_int_equal(os_file_may_write("/dev/null/file"), -ENOTDIR);
    if (geteuid() != 0)
        assert_int_equal(os_file_may_write("/etc/passwd"), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opens_only_files_below_the_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_magic_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_names_that_are_too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opens_a_fifo_without_waiting, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_a_socket, set_up, tear_down),
        cmocka_unit_test_setup_teardown(peeks_without_permission_to_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_descriptor_is_closed_on_exec, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaks_no_descriptor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reports_a_lack_of_descriptors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_exactly_the_range_or_fails, set_up, tear_down),
        cmocka_unit_test(only_a_file_that_this_user_could_write_may_be_written),
        cmocka_unit_test_setup_teardown(stats_a_link_and_not_its_target, set_up, tear_down),
        cmocka_unit_test_setup_teardown(knows_a_file_in_memory_without_a_question, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(opens_only_directories_as_roots, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("os/file", tests, NULL, NULL);
}
