/* SPDX-License-Identifier: MIT
 *
 * Several threads on one access log buffer, which another one writes out: no
 * line is lost, none is torn.
 */
#include "log/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
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
    assert_int_equal(log_access_open(&sink, path, LOG_COMBINED, NULL), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lines_of_many_threads_are_whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
