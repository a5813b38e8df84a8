/* SPDX-License-Identifier: MIT
 *
 * Access-log lines whose destination is shared, full, slow, gone or moved. Lines stay whole, and
 * every line is either written or counted.
 */
#include "log/access.h"
#include "log/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WALL_S = 971211336 }; /* 2000-10-10T20:55:36Z */

static const struct log_access_line ordinary = {
    .peer = { "127.0.0.1", 9 },
    .request_line = { "GET / HTTP/1.1", 14 },
    .host = { "example.org", 11 },
    .referer = { "https://example.org/", 20 },
    .user_agent = { "curl/8.0", 8 },
    .status = 200,
    .body_bytes = 308,
    .id = 0x3f2a0123456789bc,
};

static const char ordinary_combined[] =
    "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 308 "
    "\"https://example.org/\" \"curl/8.0\" 3f2a0123456789bc\n";

/* A directory of the test's own. */
static char directory[] = P_tmpdir "/weir-access-XXXXXX";
static char path[64];

static int make_directory(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/access.log", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static int remove_file(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

static struct span read_all(const char *name, char *bytes, size_t size)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    size_t len = 0;
    ssize_t got;
    while ((got = read(fd, bytes + len, size - len)) > 0)
        len += (size_t)got;
    assert_int_equal(got, 0);
    assert_int_equal(close(fd), 0);
    return span_of(bytes, len);
}

static void assert_span(struct span got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.at, want, got.len);
}

static uint64_t count_lines(struct span text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '\n';
    return count;
}

static void appends_to_a_file_that_others_append_to(void **state)
{
    (void)state;
    static char bytes[4096];
    struct log_access_sink sinks[2];
    struct log_access logs[2];
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(log_access_open(&sinks[i], path, NULL, NULL), 0);
        assert_int_equal(log_access_start(&logs[i], &sinks[i]), 0);
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2; i++) {
            log_access_add(&logs[i], &ordinary, WALL_S);
            log_access_flush(&logs[i]);
        }
    }
    log_access_add(&logs[0], &ordinary, WALL_S); /* written at the end */
    for (unsigned i = 0; i < 2; i++) {
        log_access_stop(&logs[i]);
        log_access_close(&sinks[i]);
        assert_int_equal(sinks[i].dropped, 0);
    }
    const struct span all = read_all(path, bytes, sizeof(bytes));
    const size_t line_len = strlen(ordinary_combined);
    assert_int_equal(all.len, 5 * line_len);
    for (unsigned i = 0; i < 5; i++)
        assert_memory_equal(all.at + i * line_len, ordinary_combined, line_len);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07, 0);
}

static void a_full_buffer_is_written_out(void **state)
{
    (void)state;
    static char bytes[4 * LOG_ACCESS_BUFFER];
    const size_t line_len = strlen(ordinary_combined);
    const unsigned count = 2 * LOG_ACCESS_BUFFER / (unsigned)line_len;
    struct log_access_sink sink;
    struct log_access log;
    assert_int_equal(log_access_open(&sink, path, NULL, NULL), 0);
    assert_int_equal(log_access_start(&log, &sink), 0);
    for (unsigned i = 0; i < count; i++) {
        log_access_add(&log, &ordinary, WALL_S);
        assert_true(log.len <= LOG_ACCESS_BUFFER);
    }
    assert_true(log.lines_pending < count);
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(read_all(path, bytes, sizeof(bytes)).len, count * line_len);
    assert_int_equal(sink.dropped, 0);
}

static void a_rotated_log_continues_in_a_new_file(void **state)
{
    (void)state;
    static char bytes[4096];
    char old_path[80];
    (void)snprintf(old_path, sizeof(old_path), "%s.1", path);
    struct log_access_sink sink;
    struct log_access log;
    assert_int_equal(log_access_open(&sink, path, NULL, NULL), 0);
    const int fd = sink.fd;
    assert_int_equal(log_access_start(&log, &sink), 0);
    log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    assert_int_equal(rename(path, old_path), 0);
    log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    /* An unfinished line of the old file does not matter in the new one. */
    log_tail_release(log_tail_claim(sink.tail, &sink.wait_again_ns), true);
    const int opened = log_file_open(path, NULL);
    assert_true(opened >= 0);
    assert_int_equal(log_access_replace(&sink, opened), 0);
    assert_int_equal(close(opened), 0);
    assert_int_equal(sink.fd, fd);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    log_access_add(&log, &ordinary, WALL_S);
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(count_lines(read_all(old_path, bytes, sizeof(bytes))), 2);
    assert_int_equal(count_lines(read_all(path, bytes, sizeof(bytes))), 1);
    assert_int_equal(unlink(old_path), 0);
}

static void reports_a_path_that_cannot_be_opened(void **state)
{
    (void)state;
    struct log_access_sink sink;
    assert_int_equal(log_access_open(&sink, "/nonexistent/access.log", NULL, NULL), -ENOENT);
    assert_int_equal(sink.fd, -1);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(log_access_open(&sink, path, NULL, NULL), -ENXIO); /* and does not wait */
}

static void a_full_disk_drops_lines_and_counts_them(void **state)
{
    (void)state;
    struct log_access_sink sink;
    struct log_access log;
    assert_int_equal(log_access_open(&sink, "/dev/full", NULL, NULL), 0);
    assert_int_equal(log_access_start(&log, &sink), 0);
    for (unsigned i = 0; i < 3000; i++)
        log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    assert_int_equal(sink.dropped, 3000);
    assert_int_equal(log.len, 0);
    assert_int_equal(log.lines_pending, 0);
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(sink.dropped, 3000);
}

static bool is_torn(struct log_access_sink *sink)
{
    const struct log_tail_turn turn = log_tail_claim(sink->tail, &sink->wait_again_ns);
    log_tail_release(turn, turn.torn);
    return turn.torn;
}

/* In a process of its own, whose files can hold at most two and a half lines. */
static void write_torn_log(void)
{
    const size_t line_len = strlen(ordinary_combined);
    struct rlimit limit;
    struct log_access_sink sink;
    struct log_access log;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (log_access_open(&sink, path, NULL, NULL) != 0 || log_access_start(&log, &sink) != 0 ||
        getrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(10);
    const rlim_t plenty = limit.rlim_cur;
    limit.rlim_cur = 2 * line_len + line_len / 2;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(11);
    for (unsigned i = 0; i < 5; i++)
        log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    if (sink.dropped != 3 || !is_torn(&sink))
        _exit(12);
    log_access_add(&log, &ordinary, WALL_S); /* no space yet */
    log_access_flush(&log);
    if (sink.dropped != 4 || !is_torn(&sink))
        _exit(13);
    limit.rlim_cur = plenty;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(14);
    log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    log_access_add(&log, &ordinary, WALL_S);
    log_access_stop(&log);
    if (sink.dropped != 4 || is_torn(&sink))
        _exit(15);
    log_access_close(&sink);
    _exit(0);
}

static void an_unfinished_line_is_ended_before_the_next(void **state)
{
    (void)state;
    static char bytes[4096];
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_torn_log();
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    const int half = (int)(strlen(ordinary_combined) / 2);
    char want[1024];
    (void)snprintf(want, sizeof(want), "%s%s%.*s\n%s%s", ordinary_combined, ordinary_combined, half,
                   ordinary_combined, ordinary_combined, ordinary_combined);
    assert_span(read_all(path, bytes, sizeof(bytes)), want);
}

/* A sink on the writing end of a pipe or socket that the test reads later. */
static void sink_over(struct log_access_sink *sink, int fd, enum log_sink_kind kind)
{
    *sink = (struct log_access_sink){ .layout = NULL };
    atomic_init(&sink->fd, fd);
    atomic_init(&sink->kind, kind);
}

/* At first the test does not read. Nothing blocks, the pipe and the buffer are filled, and
 * further lines are dropped and counted. Then the test reads. */
static void check_slow_reader(int reading, int writing, enum log_sink_kind kind)
{
    static char bytes[4 * 1024 * 1024];
    enum { LINES = 10000 };
    struct log_access_sink sink;
    struct log_access log;
    sink_over(&sink, writing, kind);
    assert_int_equal(log_access_start(&log, &sink), 0);
    for (unsigned i = 0; i < LINES; i++) {
        struct log_access_line line = ordinary;
        line.status = 100 + i;
        log_access_add(&log, &line, WALL_S);
    }
    log_access_flush(&log);
    assert_true(log.lines_pending > LOG_ACCESS_BUFFER / strlen(ordinary_combined) / 2);
    assert_true(sink.dropped > 0);

    size_t len = 0;
    while (log.len > 0) {
        const ssize_t got = read(reading, bytes + len, sizeof(bytes) - len);
        assert_true(got > 0);
        len += (size_t)got;
        log_access_flush(&log);
    }
    log_access_stop(&log);
    assert_int_equal(close(writing), 0);
    ssize_t got;
    while ((got = read(reading, bytes + len, sizeof(bytes) - len)) > 0)
        len += (size_t)got;
    assert_int_equal(got, 0);
    assert_int_equal(close(reading), 0);

    /* Whole lines, in order, and every missing line counted. */
    const struct span all = span_of(bytes, len);
    assert_int_equal(count_lines(all) + sink.dropped, LINES);
    unsigned last = 0;
    bytes[len - 1] = '\0';
    for (char *line = bytes; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        unsigned status = 0;
        int read_len = 0;
        (void)sscanf(line,
                     "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" %u 308 "
                     "\"https://example.org/\" \"curl/8.0\" 3f2a0123456789bc%n",
                     &status, &read_len);
        assert_int_equal(read_len, strlen(line));
        assert_true(status > last);
        last = status;
        line = end != NULL ? end + 1 : NULL;
    }
}

static void a_slow_pipe_loses_only_what_does_not_fit(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    check_slow_reader(ends[0], ends[1], LOG_SINK_PIPE);
}

static void a_slow_socket_loses_only_what_does_not_fit(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    check_slow_reader(ends[0], ends[1], LOG_SINK_SOCKET);
}

static void a_reader_that_is_gone_costs_only_lines(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(close(ends[0]), 0);
    struct log_access_sink sink;
    struct log_access log;
    sink_over(&sink, ends[1], LOG_SINK_PIPE);
    assert_int_equal(log_access_start(&log, &sink), 0);
    for (unsigned i = 0; i < 100; i++)
        log_access_add(&log, &ordinary, WALL_S);
    log_access_flush(&log);
    assert_int_equal(sink.dropped, 100);
    assert_int_equal(log.len, 0);
    log_access_stop(&log);
    assert_int_equal(close(ends[1]), 0);
}

/* Two processes log into the same pipe, and write in turns whenever the reader has made space. */
static void lines_of_two_writers_in_one_pipe_stay_whole(void **state)
{
    (void)state;
    static char bytes[4 * LOG_ACCESS_BUFFER];
    int ends[2];
    struct log_access_sink sinks[2];
    struct log_access logs[2];
    uint64_t added = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BUF) >= PIPE_BUF);
    for (unsigned i = 0; i < 2; i++) {
        sink_over(&sinks[i], ends[1], LOG_SINK_PIPE);
        assert_int_equal(log_access_start(&logs[i], &sinks[i]), 0);
        for (; logs[i].len < LOG_ACCESS_BUFFER / 2; added++)
            log_access_add(&logs[i], &ordinary, WALL_S);
    }
    size_t len = 0;
    for (unsigned turn = 0; logs[0].len > 0 || logs[1].len > 0; turn = 1 - turn) {
        log_access_flush(&logs[turn]);
        log_access_flush(&logs[1 - turn]);
        const ssize_t got = read(ends[0], bytes + len, PIPE_BUF);
        assert_true(got > 0);
        len += (size_t)got;
    }
    log_access_stop(&logs[0]);
    log_access_stop(&logs[1]);
    assert_int_equal(close(ends[1]), 0);
    ssize_t got;
    while ((got = read(ends[0], bytes + len, sizeof(bytes) - len)) > 0)
        len += (size_t)got;
    assert_int_equal(close(ends[0]), 0);
    const size_t line_len = strlen(ordinary_combined);
    assert_int_equal(len, added * line_len);
    for (size_t at = 0; at < len; at += line_len)
        assert_memory_equal(bytes + at, ordinary_combined, line_len);
}

static void a_line_in_a_pipe_is_never_split(void **state)
{
    (void)state;
    static char many[8000];
    memset(many, 'x', sizeof(many));
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct log_access_sink sink;
    struct log_access log;
    sink_over(&sink, ends[1], LOG_SINK_PIPE);
    assert_int_equal(log_access_start(&log, &sink), 0);
    struct log_access_line line = ordinary;
    line.request_line = span_of(many, sizeof(many));
    log_access_add(&log, &line, WALL_S);
    assert_true(log.len <= PIPE_BUF);
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(close(ends[0]), 0);
}

/* Standard output is a pipe for this test. It is written without waiting, and neither closed nor
 * changed for other processes. */
static void standard_output_stays_open_and_unchanged(void **state)
{
    (void)state;
    char bytes[1024];
    int ends[2];
    (void)fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const bool moved = dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO;
    struct log_access_sink sink;
    struct log_access log;
    const int opened = log_access_open(&sink, "-", NULL, NULL);
    const enum log_sink_kind kind = sink.kind;
    const int started = log_access_start(&log, &sink);
    log_access_add(&log, &ordinary, WALL_S);
    const int replaced = log_access_replace(&sink, ends[0]);
    log_access_stop(&log);
    log_access_close(&sink);
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    const bool restored = dup2(saved, STDOUT_FILENO) == STDOUT_FILENO;

    assert_true(moved && restored);
    assert_int_equal(opened, 0);
    assert_int_equal(started, 0);
    assert_int_equal(replaced, 0);
    assert_int_equal(kind, LOG_SINK_PIPE);
    assert_true(flags >= 0);
    assert_int_equal(flags & O_NONBLOCK, 0);
    const ssize_t got = read(ends[0], bytes, sizeof(bytes));
    assert_true(got > 0);
    assert_span(span_of(bytes, (size_t)got), ordinary_combined);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(close(saved), 0);
}

/* Standard output is a file for this test, and is written as it is. */
static void never_closes_standard_output(void **state)
{
    (void)state;
    (void)fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(saved >= 0 && null >= 0);
    const bool moved = dup2(null, STDOUT_FILENO) == STDOUT_FILENO;
    struct log_access_sink sink;
    const int opened = log_access_open(&sink, "-", NULL, NULL);
    const int fd = sink.fd;
    log_access_close(&sink);
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    const bool restored = dup2(saved, STDOUT_FILENO) == STDOUT_FILENO;
    assert_true(moved && restored);
    assert_int_equal(opened, 0);
    assert_int_equal(fd, STDOUT_FILENO);
    assert_true(flags >= 0);
    assert_int_equal(close(null), 0);
    assert_int_equal(close(saved), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(appends_to_a_file_that_others_append_to, remove_file),
        cmocka_unit_test_teardown(a_full_buffer_is_written_out, remove_file),
        cmocka_unit_test_teardown(a_rotated_log_continues_in_a_new_file, remove_file),
        cmocka_unit_test_teardown(reports_a_path_that_cannot_be_opened, remove_file),
        cmocka_unit_test(a_full_disk_drops_lines_and_counts_them),
        cmocka_unit_test_teardown(an_unfinished_line_is_ended_before_the_next, remove_file),
        cmocka_unit_test(a_slow_pipe_loses_only_what_does_not_fit),
        cmocka_unit_test(a_slow_socket_loses_only_what_does_not_fit),
        cmocka_unit_test(a_reader_that_is_gone_costs_only_lines),
        cmocka_unit_test(lines_of_two_writers_in_one_pipe_stay_whole),
        cmocka_unit_test(a_line_in_a_pipe_is_never_split),
        cmocka_unit_test(standard_output_stays_open_and_unchanged),
        cmocka_unit_test(never_closes_standard_output),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
