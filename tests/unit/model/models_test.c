/* SPDX-License-Identifier: MIT
 *
 * Each model with a session of its own kind in place of HTTP: it sends without end, and ends only
 * when the client says so. The client reads nothing until the session has received that. So a model
 * that does not read while its send waits never finishes.
 *
 * Each model runs in a process of its own, as a worker. The test is the client. It is also the
 * master, where the master accepts. The listeners are Unix sockets: with TCP, a socket that was
 * full takes more when the kernel moves bytes to the client's side.
 */
#include "model/model.h"

#include "model/wheel.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/socket.h"
#include "session/proxy.h"
#include "session/thread.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a client sends: one byte. */
#define ORIGIN "o" /* answered with TLS or PLAIN */
#define BEGIN  "b" /* answered with output that does not end */
#define END    "e" /* the output ends, and the connection with it */
#define TLS    't'
#define PLAIN  'p'
#define DRAIN  'd' /* sent when a drain begins */

#define DEADLINE_NS UINT64_C(500000000)
#define HOUR_NS     UINT64_C(3600000000000)

enum {
    PIECE = 1000,
    LENT = SESSION_PIECES * PIECE,
    PERIOD = 251, /* byte number i of the output is i % PERIOD */
    CLIENTS = 8,
    POOL_THREADS = 2 * CLIENTS,
    EXPIRING = 2 * WHEEL_TURN_MAX + CLIENTS, /* connections whose deadline passes together */
    CONNECTIONS_MAX = EXPIRING + 4 * CLIENTS,
    READERS = 64,
    WAIT_MS = 60 * 1000
};

/* Shared by the client and the processes of the model. */
static struct stage {
    char folder[32];        /* of the listeners */
    _Atomic bool received;  /* END has arrived */
    _Atomic uint64_t total; /* bytes of the whole output, once it is known */

    _Atomic uint64_t deadline_ns; /* of connections that open; 0: far */
    _Atomic unsigned expired;     /* sessions whose deadline has passed */
    _Atomic bool asked;           /* the client has asked since the first of them */
    _Atomic unsigned expired_before_answer;

    _Atomic bool announces; /* sessions announce a drain; the first SIGTERM begins it */
    _Atomic bool expires;   /* and their deadline is then */
    _Atomic bool waits;     /* such a deadline has passed, and was not acted on yet */
    _Atomic bool overtaken; /* a later deadline was acted on meanwhile */
} * stage;

/* ---- the session ---- */

/* `retires_ns` counts the bytes that the kernel has taken, `closing` is set by END. */
static char output[PERIOD + LENT];
static struct session_buffer *const sending = (struct session_buffer *)(void *)output;

void session_open(struct session *s, struct session_thread *thread, struct session_origin origin,
                  uint64_t now_ns)
{
    *s = (struct session){
        .thread = thread,
        .peer = origin.peer,
        .tls_wanted = origin.tls,
        .deadline_ns = stage->deadline_ns ? stage->deadline_ns : now_ns + HOUR_NS,
        .idle_since_ns = now_ns,
        .http2 = atomic_load(&stage->announces) ? (struct session_http2 *)(void *)output : NULL,
    };
}

/* `lingering`: the drain is announced. */
unsigned session_drain(struct session *s, uint64_t now_ns)
{
    if (!s->http2 || s->lingering)
        return 0;
    s->lingering = true;
    if (atomic_load(&stage->expires)) {
        s->deadline_ns = now_ns;
        atomic_store(&stage->waits, true);
    }
    s->answers = 1;
    s->output = sending;
    return SESSION_READ | SESSION_WRITE;
}

void session_close(struct session *s)
{
    s->output = NULL;
}

bool session_proxy_expects(const struct session_shared *shared, const struct session_peer *peer)
{
    (void)shared;
    (void)peer;
    return false;
}

bool session_proxy_admit(const struct session_shared *shared, struct session_peer *peer,
                         uint64_t now_ns)
{
    (void)shared;
    (void)peer;
    (void)now_ns;
    return true;
}

bool session_tls_has_output(const struct session *s)
{
    (void)s;
    return false;
}

bool session_delayed(const struct session *s)
{
    (void)s;
    return false;
}

size_t session_room(const struct session *s)
{
    (void)s;
    return SESSION_READ_MAX;
}

static bool is_about_origin(const struct session *s)
{
    return s->answers > 0;
}

static uint64_t left_of(const struct session *s)
{
    return s->closing ? atomic_load(&stage->total) - s->retires_ns : LENT;
}

unsigned session_feed(struct session *s, struct span in, uint64_t now_ns)
{
    (void)now_ns;
    if (in.len == 0)
        return SESSION_CLOSE;
    s->output = sending;
    s->answers = in.at[0] == *ORIGIN;
    if (s->answers)
        atomic_store(&stage->expired_before_answer, atomic_load(&stage->expired));
    if (in.at[in.len - 1] == *END) {
        s->closing = true;
        atomic_store(&stage->total, s->retires_ns + 3 * LENT + 1);
        atomic_store(&stage->received, true);
    }
    return is_about_origin(s) ? SESSION_WRITE : SESSION_READ | SESSION_WRITE;
}

struct session_out session_output(const struct session *s)
{
    static const char answers[3] = { PLAIN, TLS, DRAIN };
    struct session_out out = { .file_fd = -1 };
    assert_ptr_equal(s->output, sending);
    if (is_about_origin(s)) {
        out.piece[out.count++] = span_of(&answers[s->lingering ? 2 : s->tls_wanted], 1);
        return out;
    }
    uint64_t at = s->retires_ns, left = left_of(s);
    for (; out.count < SESSION_PIECES && left > 0; out.count++) {
        size_t len = left < PIECE ? (size_t)left : PIECE;
        out.piece[out.count] = span_of(output + at % PERIOD, len);
        at += len;
        left -= len;
    }
    return out;
}

unsigned session_sent(struct session *s, size_t bytes, uint64_t now_ns)
{
    (void)now_ns;
    uint64_t left = left_of(s);
    if (is_about_origin(s)) {
        s->output = bytes > 0 ? NULL : sending;
        return bytes > 0 ? SESSION_READ : SESSION_WRITE;
    }
    s->retires_ns += bytes;
    if (!s->closing || left > bytes)
        return SESSION_READ | SESSION_WRITE;
    s->output = NULL;
    return SESSION_CLOSE;
}

unsigned session_resume(struct session *s, uint64_t now_ns)
{
    (void)s;
    (void)now_ns;
    return SESSION_READ;
}

void session_hold(struct session *s)
{
    (void)s;
}

void session_refuse(struct session *s)
{
    (void)s;
}

unsigned session_cut(struct session *s)
{
    (void)s;
    return SESSION_CLOSE;
}

void session_failed(const struct session *s, int error)
{
    (void)s;
    (void)error;
}

/* The first one waits until the client has asked: the request arrives before all have expired. */
unsigned session_expire(struct session *s, uint64_t now_ns)
{
    s->deadline_ns = now_ns + HOUR_NS;
    if (s->http2)
        atomic_store(&stage->waits, false);
    else if (atomic_load(&stage->waits))
        atomic_store(&stage->overtaken, true);
    atomic_fetch_add(&stage->expired, 1);
    while (!atomic_load(&stage->asked))
        usleep(1000);
    return s->output ? SESSION_READ | SESSION_WRITE : SESSION_READ;
}

void session_note_taken(struct session *s, uint64_t bytes, uint64_t now_ns)
{
    (void)s;
    (void)bytes;
    (void)now_ns;
}

bool session_idle(const struct session *s)
{
    return !s->output;
}

uint64_t session_idle_since_ns(const struct session *s)
{
    return s->output ? UINT64_MAX : s->idle_since_ns;
}

/* ---- the worker ---- */

enum { LISTENERS = 2, SETS = 2 }; /* the second of a set is for TLS */

struct worker {
    const struct model *model;
    bool sticky;
    unsigned loops; /* where the model serves in event loops */
    pid_t pid;
    int listener[LISTENERS];
    struct os_socket_address address[LISTENERS];
    struct ipc_fdpass_channel channel; /* where the master accepts */
    uint32_t passed;                   /* connections so far */
};

bool server_signal(struct server *server, int signal)
{
    if (signal != SIGTERM)
        return false;
    bool drains = atomic_load(&stage->announces) && atomic_load(&server->phase) == SERVER_RUNNING;
    atomic_store(&server->shared->draining, drains);
    atomic_store(&server->phase, drains ? SERVER_DRAINING : SERVER_STOPPING);
    return true;
}

static bool is_passed(const struct worker *w)
{
    return w->model->accepts == STATS_ACCEPTS_MASTER;
}

static _Noreturn void be_worker(const struct worker *w)
{
    static const bool tls[LISTENERS] = { false, true };
    static struct log_access_sink log;
    static struct session_shared shared;
    static struct ipc_fdpass_tally tally;
    int signals[] = { SIGTERM, SIGCHLD };
    int listeners[SETS * LISTENERS] = { w->listener[0], w->listener[1], -1, -1 };
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 1 << 20, 10, 10 };
    bool loops = w->model->serves == STATS_SERVES_LOOP;
    CHECK(log_access_open(&log, "off", NULL, NULL) == 0);
    shared = (struct session_shared){
        .log = &log,
        .cache = site_cache_new(limits, READERS),
        .send_timeout_ns = HOUR_NS,
    };
    struct server server = {
        .shared = &shared,
        .listeners = listeners,
        .listener_tls = tls,
        .listener_count = is_passed(w) ? 0 : LISTENERS,
        .listener_sets = is_passed(w) ? 0 : SETS,
        .passed = { .fd = is_passed(w) ? w->channel.receiving_fd : -1,
                    .tally = is_passed(w) ? &tally : NULL,
                    .files_max = 1024 },
        .threads = loops                                   ? w->loops
                   : w->model->serves == STATS_SERVES_POOL ? POOL_THREADS
                                                           : 1,
        .cache_readers = READERS,
        .connections_max = CONNECTIONS_MAX,
        .pool_queue = CONNECTIONS_MAX,
        .pool_sticky = w->sticky,
        .drain_idle_ns = HOUR_NS,
        .drain_timeout_ns = HOUR_NS,
        .logs_fd = -1,
        .signal_fd = os_signal_open(signals, 2),
    };
    model_prepare(w->model, &server);
    _exit(w->model->serve(&server) == 0 ? 0 : 1);
}

static int open_listener(unsigned number, struct os_socket_address *ret_address)
{
    const struct os_socket_options options = { 0 };
    char text[64];
    snprintf(text, sizeof(text), "unix:%s/%u", stage->folder, number);
    assert_int_equal(os_socket_parse(text, ret_address), 0);
    int fd = os_socket_bind(ret_address, &options);
    assert_true(fd >= 0);
    assert_int_equal(os_socket_listen(fd, CLIENTS), 0);
    return fd;
}

static struct worker start_worker(const struct model *model, bool sticky, unsigned loops)
{
    struct worker w = { .model = model, .sticky = sticky, .loops = loops };
    pid_t test = getpid();
    atomic_store(&stage->received, false);
    for (unsigned i = 0; i < LISTENERS; i++)
        w.listener[i] = open_listener(i, &w.address[i]);
    assert_int_equal(ipc_fdpass_open(&w.channel), 0);
    w.pid = fork();
    assert_true(w.pid >= 0);
    if (w.pid == 0 && os_process_end_with_parent(SIGKILL, test) == 0)
        be_worker(&w);
    return w;
}

static void stop_worker(struct worker *w)
{
    int status;
    assert_int_equal(kill(w->pid, SIGTERM), 0);
    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    assert_int_equal(status, 0);
    for (unsigned i = 0; i < LISTENERS; i++) {
        os_file_close(w->listener[i]);
        unlink(((const struct sockaddr_un *)&w->address[i].storage)->sun_path);
    }
    ipc_fdpass_close(&w->channel);
}

/* Runs `test` with every model, and with both policies of a pool. */
static void with_each_model(void (*test)(struct worker *w))
{
    for (const struct model *model = model_all(); model->name; model++)
        for (int sticky = 0; sticky <= (model->serves == STATS_SERVES_POOL); sticky++) {
            print_message("%s%s\n", model->name, sticky ? ", sticky" : "");
            struct worker w = start_worker(model, sticky, SETS);
            test(&w);
            stop_worker(&w);
        }
}

/* ---- the client ---- */

/* Waits until no more output arrives, because the sockets are full. */
static void await_full_sockets(int fd)
{
    int before = -1, now = 0;
    while (now == 0 || now != before) {
        before = now;
        usleep(20 * 1000);
        assert_int_equal(ioctl(fd, FIONREAD, &now), 0);
    }
}

static void await_end_received(void)
{
    for (int i = 0; i < WAIT_MS && !atomic_load(&stage->received); i++)
        usleep(1000);
    assert_true(atomic_load(&stage->received));
}

static void pass_to_worker(struct worker *w, unsigned listener)
{
    struct ipc_fdpass_origin origin = { .tls = listener == 1 };
    int fd = os_socket_accept(w->listener[listener], &origin.peer);
    assert_true(fd >= 0);
    assert_int_equal(ipc_fdpass_send(&w->channel, fd, &origin, ++w->passed), 0);
    os_file_close(fd);
}

static int connect_to(struct worker *w, unsigned listener)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct os_socket_address *to = &w->address[listener];
    assert_int_equal(connect(fd, (const struct sockaddr *)&to->storage, to->len), 0);
    if (is_passed(w))
        pass_to_worker(w, listener);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Bytes that have arrived; 0: the end. */
static size_t receive_some(int fd, char *to, size_t size)
{
    struct pollfd end = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&end, 1, WAIT_MS), 1);
    ssize_t len = recv(fd, to, size, 0);
    assert_true(len >= 0);
    return (size_t)len;
}

static void expect_output_until_its_end(int fd)
{
    char bytes[4096];
    uint64_t at = 0;
    size_t len;
    while ((len = receive_some(fd, bytes, sizeof(bytes))) > 0) {
        assert_memory_equal(bytes, output + at % PERIOD, len);
        at += len;
    }
    assert_int_equal(at, atomic_load(&stage->total));
}

static void read_while_writing(struct worker *w)
{
    int fd = connect_to(w, 0);
    send_text(fd, BEGIN);
    await_full_sockets(fd);
    send_text(fd, END);
    await_end_received();
    expect_output_until_its_end(fd);
    os_file_close(fd);
}

static void a_session_receives_input_while_its_output_waits(void **state)
{
    (void)state;
    with_each_model(read_while_writing);
}

/* With many connections, an event loop hands some of them over to the other loop. */
static void ask_for_origin(struct worker *w)
{
    int fd[LISTENERS * CLIENTS];
    char answer;
    for (unsigned i = 0; i < LISTENERS * CLIENTS; i++) {
        fd[i] = connect_to(w, i % LISTENERS);
        send_text(fd[i], ORIGIN);
        assert_int_equal(receive_some(fd[i], &answer, 1), 1);
        assert_int_equal(answer, i % LISTENERS == 1 ? TLS : PLAIN);
    }
    for (unsigned i = 0; i < LISTENERS * CLIENTS; i++)
        os_file_close(fd[i]);
}

static void a_session_learns_whether_its_listener_is_for_tls(void **state)
{
    (void)state;
    with_each_model(ask_for_origin);
}

/* The clients send nothing: the model itself tells each session. */
static void drain_idle_sessions(struct worker *w)
{
    int fd[LISTENERS * CLIENTS];
    char answer;
    for (unsigned i = 0; i < LISTENERS * CLIENTS; i++) {
        fd[i] = connect_to(w, i % LISTENERS);
        send_text(fd[i], ORIGIN);
        assert_int_equal(receive_some(fd[i], &answer, 1), 1);
    }
    assert_int_equal(kill(w->pid, SIGTERM), 0);
    for (unsigned i = 0; i < LISTENERS * CLIENTS; i++) {
        assert_int_equal(receive_some(fd[i], &answer, 1), 1);
        assert_int_equal(answer, DRAIN);
        os_file_close(fd[i]);
    }
}

static void every_session_learns_of_a_drain_when_it_begins(void **state)
{
    (void)state;
    atomic_store(&stage->announces, true);
    with_each_model(drain_idle_sessions);
    atomic_store(&stage->announces, false);
}

/* The connection `before` expires when a timer fires that was set before the drain. If that is not
 * after the announcement, the test shows nothing. */
static void drain_into_a_deadline(struct worker *w)
{
    char answer;
    atomic_store(&stage->deadline_ns, 1);
    int before = connect_to(w, 0);
    send_text(before, ORIGIN);
    assert_int_equal(receive_some(before, &answer, 1), 1);
    atomic_store(&stage->announces, true);
    atomic_store(&stage->deadline_ns, 0);
    int fd = connect_to(w, 0);
    send_text(fd, ORIGIN);
    assert_int_equal(receive_some(fd, &answer, 1), 1);
    assert_int_equal(kill(w->pid, SIGTERM), 0);
    for (int i = 0; i < WAIT_MS && atomic_load(&stage->expired) < 2; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&stage->expired), 2);
    assert_false(atomic_load(&stage->overtaken));
    os_file_close(before);
    os_file_close(fd);
}

static void a_deadline_that_a_drain_sets_is_kept_where_threads_serve(void **state)
{
    (void)state;
    atomic_store(&stage->expires, true);
    atomic_store(&stage->asked, true);
    for (const struct model *model = model_all(); model->name; model++) {
        if (model->serves != STATS_SERVES_POOL)
            continue;
        print_message("%s\n", model->name);
        struct worker w = start_worker(model, false, 1);
        drain_into_a_deadline(&w);
        stop_worker(&w);
        atomic_store(&stage->announces, false);
        atomic_store(&stage->expired, 0);
    }
    atomic_store(&stage->expires, false);
    atomic_store(&stage->asked, false);
}

/* The sessions of one loop expire at the same time, and a client asks meanwhile. */
static void ask_while_others_expire(struct worker *w)
{
    int fd[EXPIRING], asking = connect_to(w, 0);
    char answer;
    send_text(asking, ORIGIN);
    assert_int_equal(receive_some(asking, &answer, 1), 1);
    atomic_store(&stage->deadline_ns, os_clock_now_ns() + DEADLINE_NS);
    for (unsigned i = 0; i < EXPIRING; i++)
        fd[i] = connect_to(w, 0);
    for (int i = 0; i < WAIT_MS && atomic_load(&stage->expired) == 0; i++)
        usleep(1000);
    assert_int_not_equal(atomic_load(&stage->expired), 0);
    send_text(asking, ORIGIN);
    atomic_store(&stage->asked, true);
    assert_int_equal(receive_some(asking, &answer, 1), 1);
    assert_in_range(atomic_load(&stage->expired_before_answer), 1, WHEEL_TURN_MAX);
    for (int i = 0; i < WAIT_MS && atomic_load(&stage->expired) < EXPIRING; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&stage->expired), EXPIRING);
    for (unsigned i = 0; i < EXPIRING; i++)
        os_file_close(fd[i]);
    os_file_close(asking);
}

static void a_client_is_answered_while_many_deadlines_pass(void **state)
{
    (void)state;
    for (const struct model *model = model_all(); model->name; model++) {
        if (model->serves != STATS_SERVES_LOOP)
            continue; /* a pool answers with another thread than the one that acts on timers */
        print_message("%s\n", model->name);
        struct worker w = start_worker(model, false, 1);
        ask_while_others_expire(&w);
        stop_worker(&w);
        atomic_store(&stage->deadline_ns, 0);
        atomic_store(&stage->expired, 0);
        atomic_store(&stage->asked, false);
    }
}

static int make_stage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(output); i++)
        output[i] = (char)(i % PERIOD);
    stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED)
        return -1;
    snprintf(stage->folder, sizeof(stage->folder), "%s", "/tmp/models_test.XXXXXX");
    return mkdtemp(stage->folder) ? 0 : -1;
}

static int leave_stage(void **state)
{
    (void)state;
    return rmdir(stage->folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_receives_input_while_its_output_waits),
        cmocka_unit_test(a_session_learns_whether_its_listener_is_for_tls),
        cmocka_unit_test(every_session_learns_of_a_drain_when_it_begins),
        cmocka_unit_test(a_deadline_that_a_drain_sets_is_kept_where_threads_serve),
        cmocka_unit_test(a_client_is_answered_while_many_deadlines_pass),
    };
    return cmocka_run_group_tests(tests, make_stage, leave_stage);
}
