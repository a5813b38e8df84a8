/* SPDX-License-Identifier: MIT
 *
 * Two threads serve the same cached file, each to a client of its own. The test counts cache lines
 * that both threads touch. While they answer from the cache, only lines that no thread writes may
 * be among them: the configuration, the hosts, the entry and its head and body, and constants. So
 * an atomic read-modify-write is on a line of its own thread. No thread takes a lock or allocates
 * memory.
 *
 * With `pool` and the policy park, a connection passes from thread to thread with each request.
 * What moves is listed in `moves_with_a_connection`. Everything else is as above.
 *
 * The clock stands still while accesses are recorded. So what a thread does ten times a second, or
 * once a second, is not among them, and each run has the same result. docs/performance.md says what
 * these are.
 */
#include "model/connection.h"
#include "model/model.h"
#include "model/poolthread.h"
#include "os/signal.h"
#include "session/tally.h"
#include "sharing/recorder.h"
#include "unit/session/world.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

enum { CLIENTS = 2, SETTLING_ROUNDS = 32, RECORDED_ROUNDS = 128, SERVED = 3 };

static struct {
    struct server server;
    struct stats_segment stats;
    struct session_totals totals;
    const struct model *model;
    int listeners[CLIENTS];
    pthread_t thread;
    int client[CLIENTS];
} run;

/* The test ends the server with a signal, as the master does. */
bool server_signal(struct server *server, int signal)
{
    atomic_store(&server->phase, signal == SIGTERM ? SERVER_STOPPING : SERVER_RUNNING);
    return signal == SIGTERM;
}

/* ---- the server ---- */

static void open_listener(int *ret_fd)
{
    struct os_socket_address address;
    const struct os_socket_options options = { 0 };
    assert_int_equal(os_socket_parse("127.0.0.1:0", &address), 0);
    *ret_fd = os_socket_bind(&address, &options);
    assert_true(*ret_fd >= 0);
    assert_int_equal(os_socket_listen(*ret_fd, CLIENTS), 0);
}

static void make_shared(void)
{
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 << 20, 100, 10 };
    char path[128];
    int why;
    assert_int_equal(make_world(), 0);
    (void)snprintf(path, sizeof(path), "%s/log", world.root);
    assert_int_equal(log_access_open(&world.log, path, NULL, NULL), 0);
    site_cache_free(world.shared.cache);
    world.shared.cache = site_cache_new(limits, CLIENTS + 1);
    assert_non_null(world.shared.cache);
    world.shared.hosts = session_hosts_new(world.sites, world.shared.site_count);
    assert_non_null(world.shared.hosts);
    assert_int_equal(stats_segment_create(&run.stats, &why), 0);
    world.shared.stats = &run.stats;
    session_tally_init(&run.totals, &world.shared);
}

static void *serve(void *unused)
{
    (void)unused;
    assert_int_equal(run.model->serve(&run.server), 0);
    return NULL;
}

static void start_server(const char *model, bool sticky)
{
    static const int signals[] = { SIGTERM };
    char why[MODEL_WHY_MAX];
    memset(&run, 0, sizeof(run));
    make_shared();
    run.model = model_choose(span_text(model), why);
    assert_string_equal(run.model->name, model);
    const bool each = run.model->accepts == STATS_ACCEPTS_EACH;
    run.server = (struct server){
        .shared = &world.shared,
        .listeners = run.listeners,
        .listener_count = 1,
        .listener_sets = each ? CLIENTS : 1,
        .passed.fd = -1,
        .threads = CLIENTS,
        .cache_readers = CLIENTS + 1,
        .connections_max = 16,
        .pool_queue = 16,
        .pool_sticky = sticky,
        .logs_fd = -1,
        .signal_fd = os_signal_open(signals, 1),
    };
    assert_true(run.server.signal_fd >= 0);
    for (unsigned i = 0; i < run.server.listener_sets; i++)
        open_listener(&run.listeners[i]);
    assert_int_equal(pthread_create(&run.thread, NULL, serve, NULL), 0);
}

static void stop_server(void)
{
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(pthread_join(run.thread, NULL), 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(run.client[i]);
    for (unsigned i = 0; i < run.server.listener_sets; i++)
        close(run.listeners[i]);
    close(run.server.signal_fd);
    session_tally_done(&run.totals);
    stats_segment_remove(&run.stats);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    remove_file("log");
    remove_file("small.html");
    remove_file("middle.bin");
    remove_file("big.bin");
    assert_int_equal(rmdir(world.root), 0);
}

/* ---- the clients ---- */

/* Each thread that accepts has a listener with a port of its own, so that each gets a client. */
static void connect_clients(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct os_socket_address to;
        assert_int_equal(os_socket_local(run.listeners[i % run.server.listener_sets], &to), 0);
        run.client[i] = socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(run.client[i] >= 0);
        assert_int_equal(connect(run.client[i], (struct sockaddr *)&to.storage, to.len), 0);
    }
}

static void read_answer(int fd)
{
    char bytes[4096];
    size_t len = 0;
    const char *body = NULL;
    while (!body || len < (size_t)(body - bytes) + 4 + SMALL_SIZE) {
        const ssize_t got = read(fd, bytes + len, sizeof(bytes) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
        bytes[len] = '\0';
        body = strstr(bytes, "\r\n\r\n");
    }
    assert_memory_equal(bytes, "HTTP/1.1 200 ", 13);
}

/* Both requests are under way at the same time. */
static void request_once(void)
{
    static const char request[] = GET("/small.html");
    for (unsigned i = 0; i < CLIENTS; i++)
        assert_int_equal(write(run.client[i], request, sizeof(request) - 1), sizeof(request) - 1);
    for (unsigned i = 0; i < CLIENTS; i++)
        read_answer(run.client[i]);
}

/* A cache keeps a file whose last change is older than a tick of the file system's clock. */
static void fill_cache(void)
{
    do
        request_once();
    while (site_cache_totals(world.shared.cache).entries == 0);
}

/* Whether each client's thread received a request in these rounds. A thread of the pool takes any
 * connection, so that it may have none. */
static bool each_serves(unsigned rounds)
{
    unsigned before[RECORDER_THREADS_MAX], serving = 0;
    const unsigned threads = recorder_threads();
    for (unsigned i = 0; i < threads; i++)
        before[i] = recorder_receives(i);
    while (rounds-- > 0)
        request_once();
    for (unsigned i = 0; i < threads; i++)
        serving += recorder_receives(i) >= before[i] + SERVED;
    return serving == CLIENTS;
}

/* Each thread first does what it does once, and what is due after a second. Its part of the log is
 * then nearly empty, and has space for all lines of the recording. */
static void record_requests(void)
{
    bool recorded = false;
    recorder_stop_clock();
    while (!recorded) {
        recorder_add_second();
        if (!each_serves(SETTLING_ROUNDS))
            continue;
        recorder_begin();
        recorded = each_serves(RECORDED_ROUNDS);
        recorder_end();
    }
    recorder_start_clock();
}

/* ---- what is shared ---- */

static bool is_written(const struct recorder_use *use)
{
    return use->by[RECORDER_WRITE] || use->by[RECORDER_MODIFY] || use->by[RECORDER_LOCK];
}

static void print_use(unsigned thread, const struct recorder_use *use)
{
    static const char *const names[] = { "reads", "writes", "modifies", "locks" };
    for (unsigned kind = 0; kind < RECORDER_KINDS; kind++) {
        if (!use->by[kind])
            continue;
        (void)fprintf(stderr, "      thread %u %s byte %u in\n", thread, names[kind],
                      use->offset[kind]);
        recorder_print_code(use->by[kind]);
    }
}

static void print_line(uintptr_t line)
{
    const struct recorder_block *block = recorder_block_at(line);
    (void)fprintf(stderr, "    the line at 0x%zx", (size_t)line);
    if (block) {
        (void)fprintf(stderr, ", byte %zu of the %zu that are allocated in\n",
                      (size_t)(line - block->at), block->size);
        recorder_print_code(block->by);
    } else {
        (void)fprintf(stderr, ", no block of the heap\n");
    }
}

/* Returns the number of lines that both threads use, one of them by writing. */
static unsigned count_shared_by(unsigned a, unsigned b, bool (*is_allowed)(uintptr_t line))
{
    unsigned shared = 0;
    const struct recorder_use *use = NULL;
    while ((use = recorder_next(a, use))) {
        const struct recorder_use *other = recorder_find(b, use->line);
        if (!other || (!is_written(use) && !is_written(other)) || is_allowed(use->line))
            continue;
        print_line(use->line);
        print_use(a, use);
        print_use(b, other);
        shared++;
    }
    return shared;
}

static unsigned count_shared(bool (*is_allowed)(uintptr_t line))
{
    unsigned shared = 0;
    for (unsigned a = 0; a < recorder_threads(); a++)
        for (unsigned b = a + 1; b < recorder_threads(); b++)
            shared += count_shared_by(a, b, is_allowed);
    return shared;
}

/* Returns the number of lines with a lock, whether or not another thread takes it. */
static unsigned count_locks(bool (*is_allowed)(uintptr_t line))
{
    unsigned locks = 0;
    for (unsigned i = 0; i < recorder_threads(); i++) {
        const struct recorder_use *use = NULL;
        while ((use = recorder_next(i, use))) {
            if (!use->by[RECORDER_LOCK] || is_allowed(use->line))
                continue;
            print_line(use->line);
            print_use(i, use);
            locks++;
        }
    }
    return locks;
}

static unsigned count_allocations(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < recorder_threads(); i++)
        count += recorder_allocations(i);
    return count;
}

static bool nothing(uintptr_t line)
{
    (void)line;
    return false;
}

static bool is_in(uintptr_t line, const void *from, const void *to)
{
    return line >= (uintptr_t)from && line < (uintptr_t)to;
}

/* The queue, its ring, and the connections themselves. */
static bool moves_with_a_connection(uintptr_t line)
{
    const struct recorder_block *block = recorder_block_of(
        sizeof(struct model_threadpool) + CLIENTS * sizeof(struct model_poolthread));
    assert_non_null(block);
    const struct model_threadpool *pool = (const struct model_threadpool *)block->at;
    const struct model_reactor *r = pool->reactor;
    return is_in(line, &pool->queue, &pool->queue + 1) ||
           is_in(line, pool->queue.ring, pool->queue.ring + pool->queue.slots) ||
           is_in(line, r->table, r->table + r->loop.files_max);
}

static void serve_clients(const char *model, bool sticky, bool (*is_allowed)(uintptr_t line))
{
    recorder_forget_threads();
    start_server(model, sticky);
    connect_clients();
    fill_cache();
    record_requests();
    const unsigned shared = count_shared(is_allowed), locks = count_locks(is_allowed);
    const unsigned allocations = count_allocations();
    stop_server();
    assert_int_equal(shared, 0);
    assert_int_equal(locks, 0);
    assert_int_equal(allocations, 0);
}

/* ---- tests ---- */

static void two_loops_share_no_line_that_is_written(void **state)
{
    (void)state;
    serve_clients("percore", false, nothing);
}

static void two_threads_of_the_sticky_pool_share_no_line_that_is_written(void **state)
{
    (void)state;
    serve_clients("pool", true, nothing);
}

static void two_threads_of_the_pool_share_only_what_moves_with_a_connection(void **state)
{
    (void)state;
    serve_clients("pool", false, moves_with_a_connection);
}

static void *hold_and_release(void *entry)
{
    site_cache_hold(entry);
    site_cache_release(entry);
    return NULL;
}

/* The recorder finds a reference count that two threads change. */
static void the_recorder_finds_a_line_that_two_threads_write(void **state)
{
    (void)state;
    static struct site_cache_entry entry = { .references = 1 };
    pthread_t thread;
    recorder_forget_threads();
    recorder_begin();
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, hold_and_release, &entry), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    recorder_end();
    assert_int_equal(recorder_threads(), CLIENTS);
    const struct recorder_use *use = recorder_next(0, NULL), *other = recorder_next(1, NULL);
    assert_non_null(use);
    assert_non_null(other);
    assert_non_null(use->by[RECORDER_MODIFY]);
    assert_non_null(other->by[RECORDER_MODIFY]);
    assert_true(use->line == other->line && is_in((uintptr_t)&entry.references, (void *)use->line,
                                                  (void *)(use->line + RECORDER_LINE)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorder_finds_a_line_that_two_threads_write),
        cmocka_unit_test(two_loops_share_no_line_that_is_written),
        cmocka_unit_test(two_threads_of_the_sticky_pool_share_no_line_that_is_written),
        cmocka_unit_test(two_threads_of_the_pool_share_only_what_moves_with_a_connection),
    };
    recorder_leave_out_this_thread();
    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
