/* SPDX-License-Identifier: MIT
 *
 * Sends on a pair of sockets. Output that one turn leaves over is still valid when a later turn
 * sends it, even if the cache has evicted the entry meanwhile.
 */
#include "model/transfer.h"

#include "model/pump.h"
#include "os/clock.h"
#include "os/socket.h"
#include "session/hosts.h"
#include "session/thread.h"
#include "site/mime.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define GET    "GET /a.bin HTTP/1.1\r\nHost: a\r\n\r\n"

enum { SIZE = 40 * 1024, LONG = 32 << 20, STEP = 16 * 1024 };

static struct {
    char root[64];
    char file[80];
    struct site_mime *mime;
    struct session_site site;
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread thread;
    uint64_t now_ns;
    int fd[2];
    char got[4 * SIZE];
} world;

/* A file that the kernel does not take at once. */
static void write_long_file(void)
{
    char path[80];
    snprintf(path, sizeof(path), "%s/long.bin", world.root);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, LONG), 0);
    close(fd);
}

static void remove_long_file(void)
{
    char path[80];
    snprintf(path, sizeof(path), "%s/long.bin", world.root);
    unlink(path);
}

static void write_file(char fill)
{
    static char bytes[SIZE];
    memset(bytes, fill, SIZE);
    int fd = open(world.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, SIZE), SIZE);
    close(fd);
}

static void tick(void)
{
    world.now_ns += 2 * SECOND;
    session_thread_tick(&world.thread, world.now_ns, 1800000000 + (int64_t)(world.now_ns / SECOND));
}

static int make_world(void **state)
{
    (void)state;
    static const char *const index[] = { "index.html", NULL };
    static const struct site_options options = {
        .name = "test", .root = world.root, .index = index, .body_max = 64 * 1024
    };
    snprintf(world.root, sizeof(world.root), "%s", "/tmp/transfer_test.XXXXXX");
    if (!mkdtemp(world.root))
        return -1;
    snprintf(world.file, sizeof(world.file), "%s/a.bin", world.root);
    write_file('o');
    world.mime = site_mime_new(NULL, NULL);
    const char *what;
    if (site_open(&world.site.site, &options, world.mime, &what) < 0 ||
        log_access_open(&world.log, "off", NULL, NULL) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, world.fd) < 0)
        return -1;
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 << 20, 100, 10 };
    world.shared = (struct session_shared){
        .sites = &world.site,
        .site_count = 1,
        .hosts = session_hosts_new(&world.site, 1),
        .cache = site_cache_new(limits, 1),
        .log = &world.log,
        .header_timeout_ns = 10 * SECOND,
        .idle_timeout_ns = 60 * SECOND,
        .send_timeout_ns = 60 * SECOND,
        .send_step_bytes = STEP,
    };
    world.now_ns = 1000 * SECOND;
    if (session_thread_start(&world.thread, &world.shared, 0) < 0)
        return -1;
    tick();
    return 0;
}

static int end_world(void **state)
{
    (void)state;
    session_thread_stop(&world.thread);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    close(world.fd[0]);
    close(world.fd[1]);
    unlink(world.file);
    remove_long_file();
    return rmdir(world.root);
}

/* The body that has arrived, behind the only head. */
static struct span receive_body(void)
{
    ssize_t len = recv(world.fd[1], world.got, sizeof(world.got), MSG_DONTWAIT);
    assert_true(len > SIZE);
    const char *body = memmem(world.got, (size_t)len, "\r\n\r\n", 4);
    assert_non_null(body);
    return span_of(body + 4, (size_t)(world.got + len - (body + 4)));
}

static void assert_body(char fill)
{
    struct span body = receive_body();
    assert_int_equal(body.len, SIZE);
    for (size_t i = 0; i < body.len; i++)
        assert_int_equal(body.at[i], fill);
}

static struct session begin_session(struct span requests)
{
    struct session s;
    session_open(&s, &world.thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
    assert_int_equal(session_feed(&s, requests, world.now_ns), SESSION_WRITE);
    return s;
}

static void output_that_waits_for_its_turn_survives_an_eviction(void **state)
{
    (void)state;
    struct session s = begin_session(SPAN(GET GET));
    assert_int_equal(model_transfer_send(&s, world.fd[0], 1, world.now_ns), SESSION_WRITE);
    assert_body('o'); /* the first answer; nothing of the second is sent yet */

    write_file('n');
    tick();
    struct session other = begin_session(SPAN(GET));
    assert_int_equal(model_transfer_send(&other, world.fd[0], SIZE_MAX, world.now_ns),
                     SESSION_READ);
    assert_body('n');
    session_close(&other);
    for (unsigned i = 0; i < 5; i++)
        tick();

    assert_int_equal(model_transfer_send(&s, world.fd[0], SIZE_MAX, world.now_ns), SESSION_READ);
    assert_body('o');
    session_close(&s);
}

/* ---- slow clients ---- */

/* The server's end and the client's of a TCP connection. */
static void connect_slow_client(int ret_fd[2])
{
    struct os_socket_address address;
    const int bytes = 64 * 1024;
    assert_int_equal(os_socket_parse("127.0.0.1:0", &address), 0);
    const int listener = os_socket_bind(&address, &(struct os_socket_options){ 0 });
    assert_true(listener >= 0);
    assert_int_equal(os_socket_listen(listener, 1), 0);
    assert_int_equal(os_socket_local(listener, &address), 0);
    ret_fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(ret_fd[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
    assert_int_equal(connect(ret_fd[1], (struct sockaddr *)&address.storage, address.len), 0);
    ret_fd[0] = os_socket_accept(listener, &address);
    assert_true(ret_fd[0] >= 0);
    close(listener);
}

/* Sends until the kernel takes no more, also when it has sent to the client what it can. */
static void fill_socket(struct session *s, int fd)
{
    struct pollfd writable = { .fd = fd, .events = POLLOUT };
    do
        assert_int_equal(model_transfer_send(s, fd, SIZE_MAX, world.now_ns), SESSION_WRITE);
    while (poll(&writable, 1, 0) > 0);
}

static void receive_bytes(int fd, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t len = recv(fd, world.got, bytes < SIZE ? bytes : SIZE, 0);
        assert_true(len > 0);
        bytes -= (size_t)len;
    }
}

/* Until the kernel takes no more, because the client reads nothing. */
static struct session begin_long_answer(int ret_fd[2])
{
    write_long_file();
    connect_slow_client(ret_fd);
    struct session s = begin_session(SPAN("GET /long.bin HTTP/1.1\r\nHost: a\r\n\r\n"));
    fill_socket(&s, ret_fd[0]);
    return s;
}

static unsigned expire_at_deadline(struct session *s, int fd)
{
    world.now_ns = session_deadline_ns(s);
    session_thread_tick(&world.thread, world.now_ns, 1800000000 + (int64_t)(world.now_ns / SECOND));
    return model_transfer_expire(s, fd, world.now_ns);
}

static void a_client_has_time_while_it_takes_what_the_kernel_has(void **state)
{
    (void)state;
    int fd[2];
    struct session s = begin_long_answer(fd);
    receive_bytes(fd[1], SIZE); /* the kernel may have all of the rest from now on */
    fill_socket(&s, fd[0]);
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t due_ns = session_deadline_ns(&s);
        receive_bytes(fd[1], 16 * STEP); /* the kernel takes no more yet */
        assert_int_equal(expire_at_deadline(&s, fd[0]), SESSION_WRITE);
        assert_int_equal(session_deadline_ns(&s), due_ns + 60 * SECOND);
    }
    unsigned want = SESSION_WRITE; /* the kernel sends some more at first */
    for (unsigned i = 0; i < 100 && want == SESSION_WRITE; i++)
        want = expire_at_deadline(&s, fd[0]);
    assert_int_equal(want, SESSION_CLOSE);
    session_close(&s);
    close(fd[0]);
    close(fd[1]);
}

static void a_client_that_takes_nothing_has_no_further_time(void **state)
{
    (void)state;
    int fd[2];
    struct session s = begin_long_answer(fd);
    assert_int_equal(expire_at_deadline(&s, fd[0]), SESSION_CLOSE);
    session_close(&s);
    close(fd[0]);
    close(fd[1]);
}

/* ---- pumps ---- */

static void *serve_with_pump(void *argument)
{
    static char input[SESSION_READ_MAX];
    const struct session_origin origin = { .peer.family = 4 };
    model_pump_serve(argument, &world.thread, origin, input);
    return NULL;
}

static void a_drain_does_not_end_the_input_of_a_request_under_way(void **state)
{
    (void)state;
    struct model_pump pump;
    int fd[2];
    pthread_t thread;
    write_long_file();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_RDWR | O_NONBLOCK), 0);
    const int drain_fd = model_pump_open_drain();
    model_pump_init(&pump, fd[0], drain_fd, SECOND, os_clock_now_ns());
    assert_int_equal(pthread_create(&thread, NULL, serve_with_pump, &pump), 0);
    const struct span request = SPAN("GET /long.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_int_equal(send(fd[1], request.at, request.len, 0), request.len);
    receive_bytes(fd[1], 1); /* the answer has begun, and does not fit into the socket */
    assert_false(model_pump_end_idle(&pump));
    assert_int_equal(send(fd[1], "x", 1, MSG_NOSIGNAL), 1);
    assert_true(model_pump_end(&pump));
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(fd[0]);
    close(fd[1]);
    close(drain_fd);
}

static void a_turn_sends_less_of_memory_than_of_a_file(void **state)
{
    (void)state;
    static const char bytes[MODEL_MEMORY_TURN + 1];
    const size_t most = 4 * MODEL_MEMORY_TURN;
    struct session_out out = { .piece = { span_of(bytes, 200), span_of(bytes, MODEL_MEMORY_TURN) },
                               .count = 2 };
    assert_int_equal(model_transfer_turn(&out, most), MODEL_MEMORY_TURN);
    assert_int_equal(out.piece[1].len, MODEL_MEMORY_TURN);
    out.piece[1].len++;
    assert_int_equal(model_transfer_turn(&out, 1), 1);
    assert_int_equal(out.piece[1].len, MODEL_MEMORY_TURN + 1);
    assert_int_equal(model_transfer_turn(&out, most), MODEL_MEMORY_TURN);
    assert_int_equal(out.piece[0].len, 200);
    assert_int_equal(out.piece[1].len, MODEL_MEMORY_TURN);
    out = (struct session_out){ .file_len = 2 * most };
    assert_int_equal(model_transfer_turn(&out, most), most);
    assert_int_equal(out.file_len, 2 * most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_sends_less_of_memory_than_of_a_file),
        cmocka_unit_test(a_client_has_time_while_it_takes_what_the_kernel_has),
        cmocka_unit_test(a_client_that_takes_nothing_has_no_further_time),
        cmocka_unit_test(output_that_waits_for_its_turn_survives_an_eviction),
        cmocka_unit_test(a_drain_does_not_end_the_input_of_a_request_under_way),
    };
    mallopt(M_PERTURB, 'x'); /* overwrites freed memory */
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_world, end_world);
}
