/* SPDX-License-Identifier: MIT
 *
 * Descriptors that the environment names. They must be 3, 4, ..., so each case
 * runs in a child process, whose exit status is the result.
 */
#include "server/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What is put at 3, 4, ... of a child. */
enum kind { NOTHING, TCP, TCP6, DATAGRAM, IDLE, FILE_, PIPE, PIPE_WITHOUT_READER };

/* The read end of the last pipe of kind PIPE. */
enum { READER = 50 };

static int open_kind(enum kind kind)
{
    struct os_socket_address address;
    const struct os_socket_options options = { 0 };
    int fd = -1, ends[2];
    switch (kind) {
    case NOTHING:
        return -1;
    case TCP:
    case TCP6:
        if (os_socket_parse(kind == TCP ? "127.0.0.1:0" : "[::1]:0", &address) == 0)
            fd = os_socket_bind(&address, &options);
        return fd >= 0 && os_socket_listen(fd, 4) == 0 ? fd : -1;
    case DATAGRAM:
        return socket(AF_INET, SOCK_DGRAM, 0);
    case IDLE:
        return socket(AF_INET, SOCK_STREAM, 0);
    case FILE_:
        return open("/dev/null", O_RDONLY);
    case PIPE:
        return pipe(ends) == 0 && dup2(ends[0], READER) >= 0 ? ends[1] : -1;
    case PIPE_WITHOUT_READER:
        return pipe(ends) == 0 ? ends[1] : -1; /* run() closes the other end */
    }
    return -1;
}

struct passed {
    enum kind kinds[4]; /* NOTHING at the end */
    const char *count, *names;
    pid_t pid; /* 0: the child's own */
};

/* Runs `check` in a child that was passed these; its exit status. */
static int run(const struct passed *passed, int (*check)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char text[16];
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        for (int i = 0; i < 4 && passed->kinds[i] != NOTHING; i++)
            if (dup2(open_kind(passed->kinds[i]), 40 + i) < 0)
                _exit(100);
        for (int fd = 3; fd < 40; fd++)
            close(fd);
        for (int i = 0; i < 4 && passed->kinds[i] != NOTHING; i++) {
            dup2(40 + i, 3 + i);
            close(40 + i);
        }
        snprintf(text, sizeof(text), "%d", (int)(passed->pid ? passed->pid : getpid()));
        setenv("LISTEN_PID", text, 1);
        if (passed->count)
            setenv("LISTEN_FDS", passed->count, 1);
        if (passed->names)
            setenv("LISTEN_FDNAMES", passed->names, 1);
        _exit(check());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            return 1; \
        } \
    } while (0)

static bool is_forgotten(void)
{
    return !getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES");
}

static int takes_three(void)
{
    struct server_inherited in;
    REQUIRE(server_inherited_is_upgrade() == false);
    REQUIRE(server_inherited_take(&in) == 0);
    REQUIRE(is_forgotten());
    REQUIRE(in.count == 3 && in.ready_fd == -1 && in.control_fd == -1 && in.tickets_fd == -1);
    REQUIRE(in.predecessor == 0);
    for (int i = 0; i < 3; i++) {
        REQUIRE(in.sockets[i].fd == 3 + i);
        REQUIRE(fcntl(3 + i, F_GETFD) == FD_CLOEXEC);
        REQUIRE(fcntl(3 + i, F_GETFL) & O_NONBLOCK);
    }
    for (int i = 0; i < 3; i++)
        REQUIRE(in.sockets[i].managed && !in.sockets[i].any_port && !in.sockets[i].page);
    REQUIRE(in.sockets[0].address.storage.ss_family == AF_INET);
    REQUIRE(in.sockets[2].address.storage.ss_family == AF_INET6);
    server_inherited_free(&in);
    return 0;
}

static int takes_from_a_predecessor(void)
{
    struct server_inherited in;
    REQUIRE(server_inherited_is_upgrade());
    REQUIRE(server_inherited_take(&in) == 0);
    REQUIRE(in.count == 1 && in.sockets[0].fd == 4);
    REQUIRE(!in.sockets[0].managed && in.sockets[0].any_port);
    REQUIRE(in.ready_fd == 3 && in.control_fd == 5 && in.tickets_fd == 6);
    REQUIRE(in.predecessor == getppid());
    REQUIRE(fcntl(3, F_GETFD) == FD_CLOEXEC);
    server_inherited_free(&in);
    return 0;
}

static int takes_from_no_predecessor(void)
{
    struct server_inherited in;
    REQUIRE(server_inherited_is_upgrade());
    REQUIRE(server_inherited_take(&in) == 0);
    REQUIRE(in.ready_fd == 3 && in.predecessor == 0 && !in.beside_stuck);
    server_inherited_free(&in);
    return 0;
}

static int learns_of_a_stuck_worker(void)
{
    struct server_inherited in;
    REQUIRE(server_inherited_is_upgrade());
    REQUIRE(server_inherited_take(&in) == 0);
    REQUIRE(in.ready_fd == 3 && in.count == 0 && in.beside_stuck);
    server_inherited_free(&in);
    return 0;
}

static int takes_nothing(void)
{
    struct server_inherited in;
    REQUIRE(!server_inherited_is_upgrade());
    REQUIRE(server_inherited_take(&in) == 0);
    REQUIRE(in.count == 0 && in.ready_fd == -1);
    REQUIRE(is_forgotten());
    REQUIRE(fcntl(3, F_GETFD) == 0);
    server_inherited_free(&in);
    return 0;
}

static int refuses(void)
{
    struct server_inherited in;
    REQUIRE(freopen("/dev/null", "w", stderr));
    REQUIRE(server_inherited_take(&in) < 0);
    REQUIRE(in.count == 0 && !in.sockets && is_forgotten());
    return 0;
}

/* Those of a predecessor have no meaning without its pipe. */
static void takes_the_listeners_of_a_manager_with_any_names(void **state)
{
    (void)state;
    static const char *const names[] = { "weir.socket:own", "ready:control:tickets",
                                         "page:stuck:page-any", NULL };
    int probe = open_kind(TCP6);
    if (probe < 0)
        skip();
    close(probe);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct passed passed = { { TCP, TCP, TCP6 }, "3", names[i], 0 };
        assert_int_equal(run(&passed, takes_three), 0);
    }
}

static void takes_the_descriptors_of_a_predecessor(void **state)
{
    (void)state;
    const struct passed passed = { { PIPE, TCP, TCP, FILE_ }, "4", "ready:any:control:tickets", 0 };
    assert_int_equal(run(&passed, takes_from_a_predecessor), 0);
}

/* Its parent gets no signal that was meant for the predecessor (server/management.h). */
static void a_predecessor_that_has_ended_is_none(void **state)
{
    (void)state;
    const struct passed passed = { { PIPE_WITHOUT_READER }, "1", "ready", 0 };
    assert_int_equal(run(&passed, takes_from_no_predecessor), 0);
}

static void a_worker_that_was_given_up_is_known_to_the_successor(void **state)
{
    (void)state;
    const struct passed passed = { { PIPE }, "1", SERVER_INHERITED_STUCK, 0 };
    assert_int_equal(run(&passed, learns_of_a_stuck_worker), 0);
}

static void leaves_descriptors_for_another_process(void **state)
{
    (void)state;
    const struct passed passed = { { TCP }, "1", "ready", 1 };
    assert_int_equal(run(&passed, takes_nothing), 0);
}

static void refuses_descriptors_that_cannot_be_served(void **state)
{
    (void)state;
    static const struct passed cases[] = {
        { { DATAGRAM }, "1", NULL, 0 }, { { IDLE }, "1", NULL, 0 },
        { { FILE_ }, "1", NULL, 0 },    { { TCP, PIPE }, "2", "a:b", 0 },
        { { TCP }, "2", NULL, 0 },      { { TCP }, "", NULL, 0 },
        { { TCP }, "x", NULL, 0 },      { { TCP }, "-1", NULL, 0 },
        { { TCP }, NULL, NULL, 0 },     { { TCP }, "99999999999", NULL, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(run(&cases[i], refuses), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_listeners_of_a_manager_with_any_names),
        cmocka_unit_test(takes_the_descriptors_of_a_predecessor),
        cmocka_unit_test(a_predecessor_that_has_ended_is_none),
        cmocka_unit_test(a_worker_that_was_given_up_is_known_to_the_successor),
        cmocka_unit_test(leaves_descriptors_for_another_process),
        cmocka_unit_test(refuses_descriptors_that_cannot_be_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
