/* SPDX-License-Identifier: MIT
 *
 * A mailbox keeps its message for every reader, and survives readers that misuse it.
 */
#include "ipc/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ipc_mailbox box;

static int open_box(void **state)
{
    (void)state;
    return ipc_mailbox_open(&box);
}

static int close_box(void **state)
{
    (void)state;
    ipc_mailbox_close(&box);
    return 0;
}

static bool is_same_file(int a, int b)
{
    struct stat one, two;
    return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev &&
           one.st_ino == two.st_ino;
}

/* Puts a descriptor of /dev/null and one of the root folder. */
static void put_two(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), root = open("/", O_RDONLY | O_CLOEXEC);
    const struct ipc_mailbox_item items[] = { { 'n', null }, { 'r', root } };
    assert_true(null >= 0 && root >= 0);
    assert_int_equal(ipc_mailbox_put(&box, items, 2), 0);
    assert_int_equal(close(null), 0);
    assert_int_equal(close(root), 0);
}

static void assert_two(void)
{
    struct ipc_mailbox_item got[IPC_MAILBOX_MAX];
    int root = open("/", O_RDONLY | O_CLOEXEC);
    assert_int_equal(ipc_mailbox_read(box.reading_fd, got), 2);
    assert_int_equal(got[0].label, 'n');
    assert_int_equal(got[1].label, 'r');
    assert_true(is_same_file(got[1].fd, root));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fcntl(got[i].fd, F_GETFD), FD_CLOEXEC);
        assert_int_equal(close(got[i].fd), 0);
    }
    assert_int_equal(close(root), 0);
}

static void is_empty_at_first(void **state)
{
    (void)state;
    struct ipc_mailbox_item got[IPC_MAILBOX_MAX];
    assert_int_equal(ipc_mailbox_read(box.reading_fd, got), -EAGAIN);
}

static void every_reader_gets_the_same_descriptors(void **state)
{
    (void)state;
    put_two();
    assert_two();
    assert_two();
}

static void a_message_replaces_the_one_before(void **state)
{
    (void)state;
    struct ipc_mailbox_item got[IPC_MAILBOX_MAX];
    const struct ipc_mailbox_item one = { 'x', STDERR_FILENO };
    for (int i = 0; i < 1000; i++) /* more than a socket holds */
        put_two();
    assert_int_equal(ipc_mailbox_put(&box, &one, 1), 0);
    assert_int_equal(ipc_mailbox_read(box.reading_fd, got), 1);
    assert_int_equal(got[0].label, 'x');
    assert_true(is_same_file(got[0].fd, STDERR_FILENO));
    assert_int_equal(close(got[0].fd), 0);
}

static void a_reader_cannot_send_to_the_writer(void **state)
{
    (void)state;
    assert_int_equal(send(box.reading_fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    put_two();
    assert_two();
}

static void a_reader_that_removes_the_message_costs_only_that_message(void **state)
{
    (void)state;
    char bytes[8];
    put_two();
    assert_int_equal(recv(box.reading_fd, bytes, sizeof(bytes), MSG_DONTWAIT), 2);
    put_two();
    assert_two();
}

static void a_reader_that_breaks_the_mailbox_does_not_block_the_writer(void **state)
{
    (void)state;
    const struct ipc_mailbox_item one = { 'x', STDERR_FILENO };
    assert_int_equal(shutdown(box.reading_fd, SHUT_RDWR), 0);
    assert_int_equal(ipc_mailbox_put(&box, &one, 1), -EPIPE);
}

/* In a process of its own, because it changes a limit. */
static int read_with_few_numbers(void)
{
    struct ipc_mailbox_item got[IPC_MAILBOX_MAX];
    struct rlimit limit;
    int next = dup(STDERR_FILENO);
    if (next < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 10;
    rlim_t plenty = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)next + 1; /* `next` is the last number */
    if (close(next) < 0 || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 11;
    if (ipc_mailbox_read(box.reading_fd, got) != -EMFILE)
        return 12;
    if (dup(STDERR_FILENO) != next || close(next) < 0) /* nothing stays open */
        return 13;
    limit.rlim_cur = plenty;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 14;
    return ipc_mailbox_read(box.reading_fd, got) == 2 ? 0 : 15;
}

static void a_reader_without_free_numbers_can_read_later(void **state)
{
    (void)state;
    int status = 0;
    put_two();
    pid_t pid = fork();
    if (pid == 0)
        _exit(read_with_few_numbers());
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_empty_at_first, open_box, close_box),
        cmocka_unit_test_setup_teardown(every_reader_gets_the_same_descriptors, open_box,
                                        close_box),
        cmocka_unit_test_setup_teardown(a_message_replaces_the_one_before, open_box, close_box),
        cmocka_unit_test_setup_teardown(a_reader_cannot_send_to_the_writer, open_box, close_box),
        cmocka_unit_test_setup_teardown(a_reader_that_removes_the_message_costs_only_that_message,
                                        open_box, close_box),
        cmocka_unit_test_setup_teardown(a_reader_that_breaks_the_mailbox_does_not_block_the_writer,
                                        open_box, close_box),
        cmocka_unit_test_setup_teardown(a_reader_without_free_numbers_can_read_later, open_box,
                                        close_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
