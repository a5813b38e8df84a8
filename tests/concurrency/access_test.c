/* SPDX-License-Identifier: MIT
 *
 * Several threads on one access log buffer, which another thread writes, and several processes on
 * one file that is often full: no line is lost, and none is joined to a torn one.
 */
#include "log/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, LINES = 2000 };

static struct log_access log_buffer;
static _Atomic unsigned running;

static void *add_lines(void *agent)
{
    struct log_access_line line = {
        .peer = SPAN("127.0.0.1"),
        .request_line = SPAN("GET / HTTP/1.1"),
        .user_agent = span_text(agent),
        .status = 200,
        .id = 255,
    };
    for (unsigned i = 0; i < LINES; i++)
        log_access_add(&log_buffer, &line, i / 100);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Counts the lines of each agent; every one has to be whole. */
static void count_lines(const char *path, unsigned counts[THREADS])
{
    char text[256];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof(text), file)) {
        const char *agent = strstr(text, "\"agent-");
        assert_non_null(agent);
        assert_memory_equal(text, "127.0.0.1 - - [", 15);
        unsigned index = (unsigned)(agent[7] - '0');
        assert_in_range(index, 0, THREADS - 1);
        assert_string_equal(agent + 8, "\" 00000000000000ff\n");
        counts[index]++;
    }
    fclose(file);
}

static void lines_of_many_threads_are_whole(void **state)
{
    (void)state;
    static const char *const agents[THREADS] = { "agent-0", "agent-1", "agent-2",
                                                 "agent-3", "agent-4", "agent-5" };
    char path[] = "/tmp/weir-access-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct log_access_sink sink;
    assert_int_equal(log_access_open(&sink, path, NULL, NULL), 0);
    assert_int_equal(log_access_start(&log_buffer, &sink), 0);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    log_access_share(&log_buffer, &lock);

    pthread_t threads[THREADS];
    running = THREADS;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_lines, (void *)(uintptr_t)agents[i]),
                         0);
    while (running > 0)
        if (log_access_pending(&log_buffer))
            log_access_flush(&log_buffer);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_access_stop(&log_buffer);
    assert_int_equal(sink.dropped, 0);
    log_access_close(&sink);

    unsigned counts[THREADS] = { 0 };
    count_lines(path, counts);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(counts[i], LINES);
    unlink(path);
}

/* ---- processes ---- */

enum { PROCESSES = 4, FLUSHES = 300, FLUSH_LINES = 3 };

/* For this process, the file is full a little further on. */
static void fill_disk(int fd, unsigned bytes_left)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        _exit(10);
    const struct rlimit limit = { .rlim_cur = (rlim_t)st.st_size + bytes_left,
                                  .rlim_max = RLIM_INFINITY };
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(11);
}

/* Returns how many lines this process has dropped. */
static uint64_t log_on_a_disk_that_is_often_full(struct log_access_sink *sink, unsigned seed)
{
    struct log_access log;
    const struct log_access_line line = {
        .peer = SPAN("127.0.0.1"),
        .request_line = SPAN("GET / HTTP/1.1"),
        .user_agent = SPAN("agent-0"),
        .status = 200,
        .id = 255,
    };
    (void)signal(SIGXFSZ, SIG_IGN);
    if (log_access_start(&log, sink) != 0)
        _exit(12);
    for (unsigned i = 0; i < FLUSHES; i++) {
        seed = seed * 1103515245 + 12345;
        fill_disk(sink->fd, i + 1 < FLUSHES ? seed >> 16 & 1023 : UINT32_MAX);
        for (unsigned j = 0; j < FLUSH_LINES; j++)
            log_access_add(&log, &line, 0);
        log_access_flush(&log);
    }
    log_access_stop(&log);
    return sink->dropped;
}

static bool is_whole(const char *text)
{
    return strcmp(text, "127.0.0.1 - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 - \"-\" "
                        "\"agent-0\" 00000000000000ff\n") == 0;
}

static uint64_t count_whole_lines(const char *path)
{
    char text[512];
    uint64_t whole = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof(text), file))
        whole += is_whole(text);
    assert_int_equal(fclose(file), 0);
    return whole;
}

static void a_full_disk_costs_only_lines_that_are_counted(void **state)
{
    (void)state;
    char path[] = "/tmp/weir-access-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct log_access_sink sink;
    assert_int_equal(log_access_open(&sink, path, NULL, NULL), 0);
    uint64_t *dropped = mmap(NULL, PROCESSES * sizeof(*dropped), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(dropped != MAP_FAILED);
    pid_t pids[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            dropped[i] = log_on_a_disk_that_is_often_full(&sink, i + 1);
            _exit(0);
        }
    }
    uint64_t all = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        all += dropped[i];
    }
    log_access_close(&sink);
    assert_true(all > 0);
    assert_int_equal(count_whole_lines(path) + all, PROCESSES * FLUSHES * FLUSH_LINES);
    munmap(dropped, PROCESSES * sizeof(*dropped));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_many_threads_are_whole),
        cmocka_unit_test(a_full_disk_costs_only_lines_that_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
