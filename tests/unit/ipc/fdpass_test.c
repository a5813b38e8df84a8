/* SPDX-License-Identifier: MIT
 *
 * A descriptor that is sent arrives, works, and belongs to the receiver. After an error no
 * descriptor is lost that could be kept, and none stays open.
 */
#include "ipc/fdpass.h"

#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILES = 1024 };

/* Both ends of a channel, and how many descriptors were open before. */
struct passage {
    struct ipc_fdpass_channel channel;
    struct ipc_fdpass_tally tally;
    struct ipc_fdpass_receiver receiver;
    unsigned descriptors;
};

static unsigned count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    unsigned count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int begin(void **state)
{
    static struct passage passage;
    passage = (struct passage){ .descriptors = count_descriptors() };
    assert_int_equal(ipc_fdpass_open(&passage.channel), 0);
    passage.receiver = (struct ipc_fdpass_receiver){
        .fd = passage.channel.receiving_fd,
        .tally = &passage.tally,
        .files_max = FILES,
    };
    *state = &passage;
    return 0;
}

static int nothing_is_left(void **state)
{
    struct passage *p = *state;
    ipc_fdpass_close(&p->channel);
    assert_int_equal(count_descriptors(), p->descriptors);
    return 0;
}

static struct os_socket_address an_address(void)
{
    struct os_socket_address address;
    assert_int_equal(os_socket_parse("192.0.2.7:4711", &address), 0);
    return address;
}

static struct ipc_fdpass_origin an_origin(void)
{
    return (struct ipc_fdpass_origin){ .peer = an_address() };
}

/* Sends the writing end of a new pipe, and returns the reading end. */
static int send_pipe(const struct passage *p, uint32_t number)
{
    int ends[2];
    struct ipc_fdpass_origin origin = an_origin();
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(ipc_fdpass_send(&p->channel, ends[1], &origin, number), 0);
    os_file_close(ends[1]);
    return ends[0];
}

/* Bytes written to one are read from the other. Closes both. */
static void assert_joined(int writing_fd, int reading_fd)
{
    char byte = 0;
    assert_int_equal(write(writing_fd, "x", 1), 1);
    assert_int_equal(read(reading_fd, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    os_file_close(writing_fd);
    assert_int_equal(read(reading_fd, &byte, 1), 0); /* no copy of the writing end is open */
    os_file_close(reading_fd);
}

static void a_descriptor_arrives_with_its_peer(void **state)
{
    struct passage *p = *state;
    int reading_fd = send_pipe(p, 1);
    struct ipc_fdpass_origin origin;
    int fd = ipc_fdpass_receive(&p->receiver, &origin);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    struct os_socket_address sent = an_address();
    assert_int_equal(origin.peer.len, sent.len);
    assert_memory_equal(&origin.peer.storage, &sent.storage, sent.len);
    assert_joined(fd, reading_fd);
    assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EAGAIN);
}

static void a_peer_may_have_no_address(void **state)
{
    struct passage *p = *state;
    struct ipc_fdpass_origin origin = { .tls = false };
    assert_int_equal(ipc_fdpass_send(&p->channel, STDERR_FILENO, &origin, 1), 0);
    int fd = ipc_fdpass_receive(&p->receiver, &origin);
    assert_true(fd >= 0);
    assert_int_equal(origin.peer.len, 0);
    os_file_close(fd);
}

static void a_message_says_whether_the_listener_was_for_tls(void **state)
{
    struct passage *p = *state;
    for (uint32_t i = 1; i <= 4; i++) {
        struct ipc_fdpass_origin origin = { .peer = an_address(), .tls = i % 2 == 0 };
        assert_int_equal(ipc_fdpass_send(&p->channel, STDERR_FILENO, &origin, i), 0);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        struct ipc_fdpass_origin origin;
        int fd = ipc_fdpass_receive(&p->receiver, &origin);
        assert_true(fd >= 0);
        assert_int_equal(origin.tls, i % 2 == 0);
        os_file_close(fd);
    }
}

static void a_full_channel_refuses_and_keeps_its_messages(void **state)
{
    struct passage *p = *state;
    struct ipc_fdpass_origin origin = an_origin();
    uint32_t sent = 0;
    int rc;
    while ((rc = ipc_fdpass_send(&p->channel, STDERR_FILENO, &origin, sent + 1)) == 0)
        sent++;
    assert_true(rc == -EAGAIN || rc == -ETOOMANYREFS);
    assert_in_range(sent, 16, 4096);
    assert_int_equal(ipc_fdpass_load(&p->tally, sent), sent);
    for (uint32_t i = 1; i <= sent; i++) {
        assert_true(ipc_fdpass_waits(&p->channel));
        int fd = ipc_fdpass_receive(&p->receiver, &origin);
        assert_true(fd >= 0);
        os_file_close(fd);
        assert_int_equal(atomic_load(&p->tally.taken), i);
    }
    assert_false(ipc_fdpass_waits(&p->channel));
}

static void the_end_arrives_after_the_messages_that_wait(void **state)
{
    struct passage *p = *state;
    int reading_fd = send_pipe(p, 1);
    ipc_fdpass_end(&p->channel);
    assert_true(ipc_fdpass_waits(&p->channel));
    struct ipc_fdpass_origin origin;
    assert_joined(ipc_fdpass_receive(&p->receiver, &origin), reading_fd);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EPIPE);
    assert_false(ipc_fdpass_waits(&p->channel));
    assert_int_equal(ipc_fdpass_send(&p->channel, STDERR_FILENO, &origin, 2), -EPIPE);
}

static void closing_the_channel_closes_the_descriptors_in_it(void **state)
{
    struct passage *p = *state;
    int reading_fd = send_pipe(p, 1);
    ipc_fdpass_close(&p->channel);
    char byte;
    assert_int_equal(read(reading_fd, &byte, 1), 0);
    os_file_close(reading_fd);
}

/* ---- running out of descriptors ---- */

static void limit_files(rlim_t files)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = files;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void a_descriptor_waits_while_the_process_can_open_none(void **state)
{
    struct passage *p = *state;
    int reading_fd = send_pipe(p, 1);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(STDERR_FILENO);
    os_file_close(next);
    p->receiver.files_max = (size_t)next;
    p->receiver.last_fd = next - 1;
    limit_files((rlim_t)next);
    struct ipc_fdpass_origin origin;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EMFILE);
    assert_int_equal(atomic_load(&p->tally.taken), 0);
    limit_files(before.rlim_cur);
    int fd = ipc_fdpass_receive(&p->receiver, &origin);
    assert_int_equal(fd, next);
    assert_joined(fd, reading_fd);
    assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EAGAIN);
}

/* ---- malformed messages ---- */

static void send_raw(const struct passage *p, size_t len, unsigned count, char tls)
{
    char bytes[1024] = { 1, [4] = tls };
    struct iovec part = { bytes, len };
    union {
        struct cmsghdr first;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = { 0 };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    if (count > 0) {
        int fds[2] = { STDERR_FILENO, STDERR_FILENO };
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
    }
    assert_int_equal(sendmsg(p->channel.sending_fd, &header, MSG_DONTWAIT), len);
}

static void a_malformed_message_is_dropped_with_its_descriptors(void **state)
{
    struct passage *p = *state;
    static const struct {
        size_t len;
        unsigned descriptors;
        char tls;
    } cases[] = { { 24, 0, 0 },   { 1, 1, 0 },  { 7, 1, 0 },    { 24, 1, 2 },
                  { 1024, 1, 0 }, { 24, 2, 0 }, { 1024, 2, 0 }, { 1, 0, 0 } };
    for (unsigned careful = 0; careful < 2; careful++) {
        p->receiver.files_max = careful ? 1 : FILES;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct ipc_fdpass_origin origin;
            unsigned before = count_descriptors();
            send_raw(p, cases[i].len, cases[i].descriptors, cases[i].tls);
            assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EPROTO);
            assert_int_equal(ipc_fdpass_receive(&p->receiver, &origin), -EAGAIN);
            assert_int_equal(count_descriptors(), before);
        }
    }
}

static void messages_behind_a_lost_one_move_to_the_next_channel(void **state)
{
    struct passage *p = *state;
    struct ipc_fdpass_channel next;
    assert_int_equal(ipc_fdpass_open(&next), 0);
    send_raw(p, 24, 0, 0);
    int reading_fd = send_pipe(p, 2);
    ipc_fdpass_move(&p->channel, &next);
    ipc_fdpass_close(&p->channel);
    p->channel = next;
    p->receiver.fd = next.receiving_fd;
    struct ipc_fdpass_origin origin;
    int fd = ipc_fdpass_receive(&p->receiver, &origin);
    assert_true(fd >= 0);
    assert_joined(fd, reading_fd);
    assert_int_equal(ipc_fdpass_load(&p->tally, 2), 1);
}

/* ---- counting ---- */

static void receive_and_close(struct passage *p)
{
    struct ipc_fdpass_origin origin;
    int fd = ipc_fdpass_receive(&p->receiver, &origin);
    assert_true(fd >= 0);
    os_file_close(fd);
}

static void send_numbered(const struct passage *p, uint32_t number)
{
    struct ipc_fdpass_origin origin = an_origin();
    assert_int_equal(ipc_fdpass_send(&p->channel, STDERR_FILENO, &origin, number), 0);
}

static void the_load_is_the_connections_sent_and_not_ended(void **state)
{
    struct passage *p = *state;
    for (uint32_t i = 1; i <= 3; i++)
        send_numbered(p, i);
    receive_and_close(p);
    receive_and_close(p);
    assert_int_equal(ipc_fdpass_load(&p->tally, 3), 3);
    ipc_fdpass_ended(&p->receiver);
    assert_int_equal(ipc_fdpass_load(&p->tally, 3), 2);
    receive_and_close(p);
    ipc_fdpass_ended(&p->receiver);
    ipc_fdpass_ended(&p->receiver);
    assert_int_equal(ipc_fdpass_load(&p->tally, 3), 0);
}

static void after_a_death_the_load_is_the_messages_that_wait(void **state)
{
    struct passage *p = *state;
    for (uint32_t i = 1; i <= 5; i++)
        send_numbered(p, i);
    receive_and_close(p);
    receive_and_close(p);
    ipc_fdpass_receiver_died(&p->channel, &p->tally, 5);
    assert_int_equal(ipc_fdpass_load(&p->tally, 5), 3);
    for (int i = 0; i < 3; i++)
        receive_and_close(p);
    ipc_fdpass_receiver_died(&p->channel, &p->tally, 5);
    assert_int_equal(ipc_fdpass_load(&p->tally, 5), 0);
}

static void a_message_taken_but_not_counted_is_counted_as_ended(void **state)
{
    struct passage *p = *state;
    for (uint32_t i = 1; i <= 3; i++)
        send_numbered(p, i);
    receive_and_close(p);
    struct ipc_fdpass_tally other = { 0 };
    struct ipc_fdpass_receiver dies = { p->receiver.fd, &other, -1, FILES, 0 };
    struct ipc_fdpass_origin origin;
    os_file_close(ipc_fdpass_receive(&dies, &origin));
    ipc_fdpass_receiver_died(&p->channel, &p->tally, 3);
    receive_and_close(p);
    assert_int_equal(ipc_fdpass_load(&p->tally, 3), 1);
    ipc_fdpass_ended(&p->receiver);
    assert_int_equal(ipc_fdpass_load(&p->tally, 3), 0);
}

static void a_sender_that_waits_is_notified_once(void **state)
{
    struct passage *p = *state;
    uint64_t wakes;
    p->receiver.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ipc_fdpass_ended(&p->receiver);
    assert_int_equal(read(p->receiver.wake_fd, &wakes, sizeof(wakes)), -1);
    atomic_store(&p->tally.notify, true);
    for (int i = 0; i < 3; i++)
        ipc_fdpass_ended(&p->receiver);
    assert_int_equal(read(p->receiver.wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
    assert_int_equal(wakes, 1);
    os_file_close(p->receiver.wake_fd);
}

static void the_message_numbers_may_wrap_around(void **state)
{
    struct passage *p = *state;
    atomic_store(&p->tally.taken, UINT32_MAX);
    atomic_store(&p->tally.ended, UINT32_MAX);
    send_numbered(p, 0);
    assert_int_equal(ipc_fdpass_load(&p->tally, 0), 1);
    receive_and_close(p);
    assert_int_equal(ipc_fdpass_load(&p->tally, 0), 1);
    ipc_fdpass_ended(&p->receiver);
    assert_int_equal(ipc_fdpass_load(&p->tally, 0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, nothing_is_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_descriptor_arrives_with_its_peer),
        TEST(a_peer_may_have_no_address),
        TEST(a_message_says_whether_the_listener_was_for_tls),
        TEST(a_full_channel_refuses_and_keeps_its_messages),
        TEST(the_end_arrives_after_the_messages_that_wait),
        TEST(closing_the_channel_closes_the_descriptors_in_it),
        TEST(a_descriptor_waits_while_the_process_can_open_none),
        TEST(a_malformed_message_is_dropped_with_its_descriptors),
        TEST(messages_behind_a_lost_one_move_to_the_next_channel),
        TEST(the_load_is_the_connections_sent_and_not_ended),
        TEST(after_a_death_the_load_is_the_messages_that_wait),
        TEST(a_message_taken_but_not_counted_is_counted_as_ended),
        TEST(a_sender_that_waits_is_notified_once),
        TEST(the_message_numbers_may_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
