/* SPDX-License-Identifier: MIT
 *
 * Connections are accepted only when they can be passed, go to the least loaded worker, and are not
 * lost when a worker dies or a channel is full. The test plays the workers.
 */
#include "server/dispatch.h"

#include "os/file.h"
#include "os/socket.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 3, CLIENTS_MAX = 1000 };

struct stage {
    unsigned descriptors; /* before */
    struct os_socket_address address, tls_address;
    int listener, tls_listener;
    struct server_dispatch *dispatch;
    int clients[CLIENTS_MAX];
    unsigned client_count;
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

static int open_listener(struct os_socket_address *ret_address)
{
    const struct os_socket_options options = { 0 };
    assert_int_equal(os_socket_parse("127.0.0.1:0", ret_address), 0);
    int fd = os_socket_bind(ret_address, &options);
    assert_true(fd >= 0);
    assert_int_equal(os_socket_listen(fd, CLIENTS_MAX), 0);
    assert_int_equal(os_socket_local(fd, ret_address), 0);
    return fd;
}

static int begin(void **state)
{
    static const bool tls[] = { false, true };
    static struct stage stage;
    stage = (struct stage){ .descriptors = count_descriptors() };
    stage.listener = open_listener(&stage.address);
    stage.tls_listener = open_listener(&stage.tls_address);
    int *listeners = malloc(2 * sizeof(*listeners));
    assert_non_null(listeners);
    listeners[0] = stage.listener;
    listeners[1] = stage.tls_listener;
    assert_int_equal(server_dispatch_new(WORKERS, &stage.dispatch), 0);
    assert_int_equal(server_dispatch_begin(stage.dispatch, listeners, tls, 2), 0);
    *state = &stage;
    return 0;
}

static int nothing_is_left(void **state)
{
    struct stage *stage = *state;
    server_dispatch_free(stage->dispatch);
    os_file_close(stage->listener);
    os_file_close(stage->tls_listener);
    for (unsigned i = 0; i < stage->client_count; i++)
        os_file_close(stage->clients[i]);
    assert_int_equal(count_descriptors(), stage->descriptors);
    return 0;
}

static void connect_client(struct stage *stage, const struct os_socket_address *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *to = (const struct sockaddr *)&address->storage;
    assert_int_equal(connect(fd, to, address->len), 0);
    assert_true(stage->client_count < CLIENTS_MAX);
    stage->clients[stage->client_count++] = fd;
}

static void connect_clients(struct stage *stage, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        connect_client(stage, &stage->address);
}

static bool is_readable(const struct stage *stage)
{
    struct pollfd end = { .fd = server_dispatch_fd(stage->dispatch), .events = POLLIN };
    return poll(&end, 1, 0) == 1;
}

static void act_until_quiet(const struct stage *stage)
{
    while (is_readable(stage))
        server_dispatch_act(stage->dispatch);
}

static void start_all(const struct stage *stage)
{
    for (unsigned i = 0; i < WORKERS; i++)
        server_dispatch_up(stage->dispatch, i);
}

/* A process that is worker `index`: takes up to `count` connections, ends `ended` of them, and dies
 * with the rest. Returns how many it took; 100 more when it then found the end. */
static unsigned be_worker(const struct stage *stage, unsigned index, unsigned count, unsigned ended)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ipc_fdpass_receiver receiver = server_dispatch_keep(stage->dispatch, index);
        receiver.files_max = CLIENTS_MAX;
        struct ipc_fdpass_origin origin;
        unsigned taken = 0;
        int fd = 0;
        while (taken < count && (fd = ipc_fdpass_receive(&receiver, &origin)) >= 0)
            taken++;
        for (unsigned i = 0; i < ended; i++)
            ipc_fdpass_ended(&receiver);
        _exit((int)taken + (fd == -EPIPE ? 100 : 0));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

static void accepts_nothing_before_a_worker_is_up(void **state)
{
    struct stage *stage = *state;
    connect_clients(stage, 1);
    assert_false(is_readable(stage));
    server_dispatch_up(stage->dispatch, 1);
    assert_true(is_readable(stage));
    act_until_quiet(stage);
    assert_true(server_dispatch_waits(stage->dispatch, 1));
    assert_false(server_dispatch_waits(stage->dispatch, 0));
    server_dispatch_down(stage->dispatch, 1);
    connect_clients(stage, 1);
    assert_false(is_readable(stage));
}

static void connections_are_spread_evenly(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 31);
    act_until_quiet(stage);
    unsigned sum = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        unsigned taken = be_worker(stage, i, CLIENTS_MAX, 0);
        assert_in_range(taken, 10, 11);
        sum += taken;
    }
    assert_int_equal(sum, 31);
}

static void a_worker_learns_which_connections_came_for_tls(void **state)
{
    struct stage *stage = *state;
    server_dispatch_up(stage->dispatch, 0);
    for (unsigned i = 0; i < 4; i++) {
        connect_client(stage, i % 2 == 0 ? &stage->address : &stage->tls_address);
        act_until_quiet(stage);
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ipc_fdpass_receiver receiver = server_dispatch_keep(stage->dispatch, 0);
        receiver.files_max = CLIENTS_MAX;
        struct ipc_fdpass_origin origin;
        int right = 0;
        for (unsigned i = 0; i < 4; i++)
            right += ipc_fdpass_receive(&receiver, &origin) >= 0 && origin.tls == (i % 2 != 0);
        _exit(right);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 4);
}

static void a_worker_whose_connections_end_gets_the_next_ones(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 30);
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 2, 10, 10), 10);
    connect_clients(stage, 5);
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 2, CLIENTS_MAX, 0), 5);
}

static void a_successor_gets_the_connections_of_a_dead_worker(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 30);
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 0, 4, 0), 4);
    server_dispatch_down(stage->dispatch, 0);
    connect_clients(stage, 2); /* to the others, while it is gone */
    act_until_quiet(stage);
    server_dispatch_up(stage->dispatch, 0);
    connect_clients(stage, 5); /* to its successor, for which 6 wait and not 10 */
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 0, CLIENTS_MAX, 0), 11);
    assert_int_equal(be_worker(stage, 1, CLIENTS_MAX, 0), 11);
    assert_int_equal(be_worker(stage, 2, CLIENTS_MAX, 0), 11);
}

/* A process that is worker `index`, takes some connections, and reports wrong numbers. It can write
 * no tally but its own. */
static void be_hostile_worker(const struct stage *stage, unsigned index, uint32_t value)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ipc_fdpass_receiver receiver = server_dispatch_keep(stage->dispatch, index);
        receiver.files_max = CLIENTS_MAX;
        struct ipc_fdpass_origin origin;
        for (unsigned i = 0; i < 4; i++)
            if (ipc_fdpass_receive(&receiver, &origin) < 0)
                _exit(1);
        char line[512];
        unsigned shared = 0;
        FILE *maps = fopen("/proc/self/maps", "re");
        while (maps && fgets(line, sizeof(line), maps))
            shared += strstr(line, " rw-s ") != NULL;
        memset(receiver.tally, (int)value, sizeof(*receiver.tally));
        _exit(shared == 1 ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_worker_that_reports_wrong_numbers_harms_no_other(void **state)
{
    struct stage *stage = *state;
    static const uint32_t values[] = { 0xff, 0, 0x80, 0x7f };
    start_all(stage);
    for (unsigned i = 0; i < 4; i++) {
        connect_clients(stage, 30);
        act_until_quiet(stage);
        be_hostile_worker(stage, 0, values[i]);
        server_dispatch_down(stage->dispatch, 0);
        connect_clients(stage, 2);
        act_until_quiet(stage);
        server_dispatch_up(stage->dispatch, 0);
        connect_clients(stage, 5); /* 6 wait for the successor, and not 10 */
        act_until_quiet(stage);
        for (unsigned worker = 0; worker < WORKERS; worker++) {
            assert_int_equal(be_worker(stage, worker, 11, 11), 11);
            assert_false(server_dispatch_waits(stage->dispatch, worker));
        }
    }
}

/* A process that is worker `index` and shuts its end of the channel. */
static void shut_channel(const struct stage *stage, unsigned index)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(shutdown(server_dispatch_keep(stage->dispatch, index).fd, SHUT_RDWR) == 0 ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_worker_that_shuts_its_channel_harms_no_other(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 3);
    act_until_quiet(stage);
    shut_channel(stage, 0);
    connect_clients(stage, 6);
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 1, CLIENTS_MAX, 4), 4);
    assert_int_equal(be_worker(stage, 2, CLIENTS_MAX, 4), 4);
    server_dispatch_down(stage->dispatch, 0);
    server_dispatch_up(stage->dispatch, 0);
    connect_clients(stage, 2); /* 1 waits for the successor already */
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 0, CLIENTS_MAX, 0), 1);
    connect_clients(stage, 3);
    act_until_quiet(stage);
    assert_int_equal(be_worker(stage, 0, CLIENTS_MAX, 0), 1);
}

/* All workers end while the master holds a connection that it could pass to none of them. */
static void successors_serve_all(const struct stage *stage, unsigned expected)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < WORKERS; i++)
        server_dispatch_down(stage->dispatch, i);
    start_all(stage);
    act_until_quiet(stage);
    for (unsigned i = 0; i < WORKERS; i++)
        sum += be_worker(stage, i, CLIENTS_MAX, 0);
    assert_int_equal(sum, expected);
}

static void the_successors_of_workers_that_shut_their_channels_serve(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    for (unsigned i = 0; i < WORKERS; i++)
        shut_channel(stage, i);
    connect_clients(stage, 4);
    act_until_quiet(stage);
    successors_serve_all(stage, 4);
}

/* A process that is worker `index` and reads its eventfd (`reads`), or writes it. Returns the count
 * that it has read. */
static unsigned use_eventfd(const struct stage *stage, unsigned index, bool reads)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fd = server_dispatch_keep(stage->dispatch, index).wake_fd;
        uint64_t count = 1;
        ssize_t len = reads ? read(fd, &count, sizeof(count)) : write(fd, &count, sizeof(count));
        _exit(len == (ssize_t)sizeof(count) ? (int)count : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (unsigned)WEXITSTATUS(status);
}

/* A worker can make its eventfd block, and empty it before the master reads. */
static void the_master_reads_no_eventfd(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    for (unsigned count = 1; count <= 2; count++) {
        (void)use_eventfd(stage, 1, false);
        assert_true(is_readable(stage));
        act_until_quiet(stage);
    }
    assert_int_equal(use_eventfd(stage, 1, true), 2);
}

static void with_full_channels_one_connection_is_held_and_the_rest_wait(void **state)
{
    struct stage *stage = *state;
    server_dispatch_up(stage->dispatch, 0);
    unsigned before = count_descriptors();
    connect_clients(stage, 900);
    act_until_quiet(stage);
    assert_int_equal(count_descriptors(), before + 900 + 1);
    unsigned taken = be_worker(stage, 0, 70, 70);
    assert_int_equal(taken, 70);
    unsigned got;
    while (act_until_quiet(stage), (got = be_worker(stage, 0, 70, 70)) > 0)
        taken += got;
    assert_int_equal(taken, 900);
    assert_int_equal(count_descriptors(), before + 900);
}

/* A process that is worker `index` and can have `most` connections: it has none yet. */
static void set_bound(const struct stage *stage, unsigned index, uint32_t most)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct ipc_fdpass_receiver receiver = server_dispatch_keep(stage->dispatch, index);
        atomic_store(&receiver.tally->most, most);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void a_worker_at_its_limit_gets_no_more_until_a_connection_ends(void **state)
{
    struct stage *stage = *state;
    for (unsigned i = 0; i < WORKERS; i++)
        set_bound(stage, i, 5);
    start_all(stage);
    connect_clients(stage, 20);
    act_until_quiet(stage);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(be_worker(stage, 1, CLIENTS_MAX, 2), round == 0 ? 5 : 2);
        assert_true(is_readable(stage));
        act_until_quiet(stage);
    }
    assert_int_equal(be_worker(stage, 0, CLIENTS_MAX, 0), 5);
    assert_int_equal(be_worker(stage, 1, CLIENTS_MAX, 0), 2);
    assert_int_equal(be_worker(stage, 2, CLIENTS_MAX, 0), 5);
}

static void the_successors_of_workers_at_their_limit_serve(void **state)
{
    struct stage *stage = *state;
    for (unsigned i = 0; i < WORKERS; i++)
        set_bound(stage, i, 5);
    start_all(stage);
    connect_clients(stage, 20);
    act_until_quiet(stage);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(be_worker(stage, i, CLIENTS_MAX, 0), 5);
    successors_serve_all(stage, 5);
}

static void a_stop_passes_the_backlog_and_then_ends_the_channels(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 9);
    server_dispatch_stop(stage->dispatch, true);
    assert_false(is_readable(stage));
    connect_clients(stage, 1);
    assert_false(is_readable(stage));
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_true(server_dispatch_waits(stage->dispatch, i));
        assert_int_equal(be_worker(stage, i, CLIENTS_MAX, 0), 103);
        assert_false(server_dispatch_waits(stage->dispatch, i));
    }
}

static void a_stop_can_leave_the_backlog_to_other_listeners(void **state)
{
    struct stage *stage = *state;
    start_all(stage);
    connect_clients(stage, 1);
    server_dispatch_stop(stage->dispatch, false);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(be_worker(stage, i, CLIENTS_MAX, 0), 100);
    struct os_socket_address peer;
    int fd = os_socket_accept(stage->listener, &peer);
    assert_true(fd >= 0);
    os_file_close(fd);
}

static void the_held_connection_is_passed_after_a_stop(void **state)
{
    struct stage *stage = *state;
    server_dispatch_up(stage->dispatch, 0);
    connect_clients(stage, 900);
    act_until_quiet(stage);
    server_dispatch_stop(stage->dispatch, true);
    unsigned sum = 0, got;
    while (act_until_quiet(stage), (got = be_worker(stage, 0, 70, 70)) < 100)
        sum += got;
    sum += got - 100;
    assert_in_range(sum, 17, 899);
    assert_false(server_dispatch_waits(stage->dispatch, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, nothing_is_left)

static void the_least_loaded_worker_is_chosen(void **state)
{
    (void)state;
    const struct server_dispatch_candidate workers[] = { { 5, true }, { 2, true }, { 3, true } };
    for (unsigned from = 0; from < 6; from++)
        assert_int_equal(server_dispatch_choose(workers, 3, from), 1);
}

static void a_worker_that_takes_none_is_skipped(void **state)
{
    (void)state;
    const struct server_dispatch_candidate workers[] = { { 5, true }, { 2, false }, { 3, true } };
    assert_int_equal(server_dispatch_choose(workers, 3, 0), 2);
    const struct server_dispatch_candidate none[] = { { 0, false }, { 0, false } };
    assert_int_equal(server_dispatch_choose(none, 2, 1), -1);
}

static void equally_loaded_workers_take_turns(void **state)
{
    (void)state;
    const struct server_dispatch_candidate workers[] = { { 4, true }, { 4, true }, { 4, true } };
    assert_int_equal(server_dispatch_choose(workers, 3, 1), 1);
    assert_int_equal(server_dispatch_choose(workers, 3, 2), 2);
    assert_int_equal(server_dispatch_choose(workers, 3, 3), 0);
}

static void equal_loads_are_spread_evenly(void **state)
{
    (void)state;
    struct server_dispatch_candidate workers[7];
    for (unsigned i = 0; i < 7; i++)
        workers[i] = (struct server_dispatch_candidate){ 0, true };
    for (unsigned i = 0, from = 0; i < 100; i++) {
        int chosen = server_dispatch_choose(workers, 7, from);
        workers[chosen].load++;
        from = (unsigned)chosen + 1;
        for (unsigned k = 0; k < 7; k++)
            assert_in_range(workers[k].load, i / 7, i / 7 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_loaded_worker_is_chosen),
        cmocka_unit_test(a_worker_that_takes_none_is_skipped),
        cmocka_unit_test(equally_loaded_workers_take_turns),
        cmocka_unit_test(equal_loads_are_spread_evenly),
        TEST(accepts_nothing_before_a_worker_is_up),
        TEST(connections_are_spread_evenly),
        TEST(a_worker_learns_which_connections_came_for_tls),
        TEST(a_worker_whose_connections_end_gets_the_next_ones),
        TEST(a_successor_gets_the_connections_of_a_dead_worker),
        TEST(a_worker_that_reports_wrong_numbers_harms_no_other),
        TEST(a_worker_that_shuts_its_channel_harms_no_other),
        TEST(the_successors_of_workers_that_shut_their_channels_serve),
        TEST(the_successors_of_workers_at_their_limit_serve),
        TEST(the_master_reads_no_eventfd),
        TEST(with_full_channels_one_connection_is_held_and_the_rest_wait),
        TEST(a_worker_at_its_limit_gets_no_more_until_a_connection_ends),
        TEST(a_stop_passes_the_backlog_and_then_ends_the_channels),
        TEST(a_stop_can_leave_the_backlog_to_other_listeners),
        TEST(the_held_connection_is_passed_after_a_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
