/* SPDX-License-Identifier: MIT
 *
 * The error log: the format of its lines, which lines are written, and lines that are long,
 * hostile, repeated or cannot be written.
 */
#include "log/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int filled = -1; /* another process fills this pipe after each poll */

int poll(struct pollfd *ends, nfds_t count, int timeout_ms)
{
    const struct timespec time = { .tv_sec = timeout_ms / 1000,
                                   .tv_nsec = timeout_ms % 1000 * 1000000L };
    const int ready = ppoll(ends, count, timeout_ms < 0 ? NULL : &time, NULL);
    static const char filler[4096];
    while (filled >= 0 && write(filled, filler, sizeof(filler)) > 0)
        continue;
    return ready;
}

static char directory[] = P_tmpdir "/weir-error-XXXXXX";
static char path[64];
static char text[256 * 1024]; /* the content of the log */

static int make_directory(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    if (mkdtemp(directory) == NULL)
        return -1;
    (void)snprintf(path, sizeof(path), "%s/error.log", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static int use_log(const char *where, enum log_level level)
{
    const int fd = log_error_open(where, NULL);
    if (fd >= 0)
        log_error_use(fd, where, level);
    return fd >= 0 ? 0 : fd;
}

static int open_log(void **state)
{
    (void)state;
    return use_log(path, LOG_INFO);
}

static int close_log(void **state)
{
    (void)state;
    (void)unlink(path);
    return use_log(NULL, LOG_INFO);
}

static size_t read_log(const char *name)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t got = read(fd, text, sizeof(text) - 1);
    assert_true(got >= 0);
    assert_int_equal(close(fd), 0);
    text[got] = '\0';
    return (size_t)got;
}

static unsigned count_lines(void)
{
    unsigned count = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

static void assert_matches(const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const int result = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    if (result != 0)
        fail_msg("not %s but %s", pattern, text);
}

#define TIME "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z"

static void a_line_has_time_level_and_process(void **state)
{
    (void)state;
    log_error(LOG_ERROR, "site %s: cannot open %s: %d", "docs", "/srv/docs", 13);
    (void)read_log(path);
    char pattern[256];
    (void)snprintf(pattern, sizeof(pattern),
                   "^" TIME " error \\[%d\\] site docs: cannot open /srv/docs: 13\n$",
                   (int)getpid());
    assert_matches(pattern);
}

static void only_lines_of_the_level_or_above_are_written(void **state)
{
    (void)state;
    assert_int_equal(use_log(path, LOG_WARNING), 0);
    log_error(LOG_DEBUG, "a");
    log_error(LOG_INFO, "b");
    log_error(LOG_WARNING, "c");
    log_error(LOG_ERROR, "d");
    (void)read_log(path);
    assert_int_equal(count_lines(), 2);
    assert_matches("^[^ ]+ warning [^ ]+ c\n[^ ]+ error [^ ]+ d\n$");

    assert_int_equal(use_log(path, LOG_DEBUG), 0);
    log_error(LOG_DEBUG, "e");
    (void)read_log(path);
    assert_matches(" debug [^ ]+ e\n$");
}

static void escapes_control_bytes_and_no_text(void **state)
{
    (void)state;
    log_error(LOG_INFO, "%s", "one\ntwo\r\x1b[31m\x7f \"q\\\" gr\xc3\xbc\xc3\x9f \xc2\x9b \xff");
    (void)read_log(path);
    assert_int_equal(count_lines(), 1);
    assert_non_null(strstr(text, "one\\x0atwo\\x0d\\x1b[31m\\x7f \"q\\\" gr\xc3\xbc\xc3\x9f "
                                 "\\xc2\\x9b \\xff\n"));
}

static void marks_a_long_line_that_is_cut(void **state)
{
    (void)state;
    static char many[3 * LOG_ERROR_LINE_MAX];
    static const char bytes[] = { 'x', '\x01' }; /* too long as it is, and too long when escaped */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(truncate(path, 0), 0);
        memset(many, bytes[i], sizeof(many) - 1);
        log_error(LOG_INFO, "%s", many);
        const size_t len = read_log(path);
        assert_true(len > LOG_ERROR_LINE_MAX / 2 && len <= LOG_ERROR_LINE_MAX);
        assert_int_equal(count_lines(), 1);
        assert_string_equal(text + len - 6, i == 0 ? "xx...\n" : "01...\n");
    }
}

static void keeps_errno_and_can_print_it(void **state)
{
    (void)state;
    errno = ENOENT;
    log_error(LOG_INFO, "cannot open: %m");
    assert_int_equal(errno, ENOENT);
    (void)read_log(path);
    assert_matches("cannot open: No such file or directory\n$");

    assert_int_equal(use_log("/dev/full", LOG_INFO), 0);
    errno = ENOENT;
    log_error(LOG_INFO, "%s", "this cannot be written");
    assert_int_equal(errno, ENOENT);
    assert_int_equal(use_log(path, LOG_INFO), 0);
    log_error(LOG_INFO, "%s", "this can"); /* and reports the loss */
}

static void limits_how_often_a_line_is_written(void **state)
{
    (void)state;
    struct log_error_limit limit = { 0 };
    struct log_error_limit other = { 0 };
    for (unsigned i = 0; i < 1000; i++)
        log_error_limited(&limit, 3600, LOG_ERROR, "too many open files (%u)", i);
    log_error_limited(&other, 3600, LOG_ERROR, "something else");
    log_error_limited(&other, 3600, LOG_DEBUG, "not wanted at all");
    (void)read_log(path);
    assert_int_equal(count_lines(), 2);
    assert_matches("too many open files \\(0\\)\n.*something else\n$");
    assert_int_equal(other.held_back, 0);

    log_error_limited(&limit, 0, LOG_ERROR, "still too many"); /* the interval is over */
    log_error_limited(&limit, 0, LOG_ERROR, "and again");
    (void)read_log(path);
    assert_matches("still too many \\(and 999 more like it\\)\n.*and again\n$");
}

static void a_rotated_log_continues_in_a_new_file(void **state)
{
    (void)state;
    char moved[80];
    (void)snprintf(moved, sizeof(moved), "%s.1", path);
    log_error(LOG_INFO, "first");
    assert_int_equal(rename(path, moved), 0);
    log_error(LOG_INFO, "second");
    assert_string_equal(log_error_path(), path);
    const int opened = log_file_open(path, NULL);
    assert_true(opened >= 0);
    assert_int_equal(log_error_replace(opened), 0);
    assert_int_equal(close(opened), 0);
    log_error(LOG_INFO, "third");
    (void)read_log(moved);
    assert_matches("first\n.*second\n$");
    (void)read_log(path);
    assert_int_equal(count_lines(), 1);
    assert_matches("third\n$");

    assert_int_equal(unlink(moved), 0);
}

/* Standard error is a pipe while `say` runs. Returns what was written. */
static void capture_standard_error(void (*say)(void))
{
    int ends[2];
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    const bool moved = dup2(ends[1], STDERR_FILENO) == STDERR_FILENO;
    say();
    const bool restored = dup2(saved, STDERR_FILENO) == STDERR_FILENO;
    assert_true(moved && restored);
    const ssize_t got = read(ends[0], text, sizeof(text) - 1);
    assert_true(got >= 0);
    text[got] = '\0';
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(close(saved), 0);
}

static void say_after_a_failed_open(void)
{
    assert_int_equal(use_log("/nonexistent/error.log", LOG_INFO), -ENOENT);
    assert_null(log_error_path());
    assert_int_equal(log_error_replace(STDOUT_FILENO), 0); /* standard error stays */
    log_error(LOG_INFO, "here");
    assert_int_equal(use_log("-", LOG_INFO), 0);
    log_error(LOG_INFO, "and here");
}

static void hear(void *context, const char *line)
{
    (void)snprintf(context, 64, "%s", line);
}

static void errors_can_be_diverted_to_the_caller(void **state)
{
    (void)state;
    char heard[64] = "";
    log_error_divert(hear, heard);
    log_error(LOG_WARNING, "a warning stays");
    log_error(LOG_ERROR, "cannot open %s", "/srv");
    log_error_divert(NULL, NULL);
    assert_string_equal(heard, "cannot open /srv");
    log_error(LOG_ERROR, "the next does not");
    (void)read_log(path);
    assert_int_equal(count_lines(), 2);
    assert_null(strstr(text, "/srv"));
}

static void lines_go_to_standard_error_without_a_file(void **state)
{
    (void)state;
    capture_standard_error(say_after_a_failed_open);
    assert_int_equal(count_lines(), 2);
    assert_matches("here\n.*and here\n$");
}

/* The pipe would block a writer. The log must not make standard error non-blocking. */
static void a_full_pipe_loses_lines_and_reports_how_many(void **state)
{
    (void)state;
    int ends[2];
    char filler[4096] = { 0 };
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], filler, sizeof(filler)) > 0)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    const bool moved = dup2(ends[1], STDERR_FILENO) == STDERR_FILENO;
    log_error(LOG_INFO, "lost");
    log_error(LOG_INFO, "lost too");
    ssize_t got;
    while ((got = read(ends[0], filler, sizeof(filler))) > 0)
        ;
    log_error(LOG_INFO, "heard");
    log_error(LOG_INFO, "heard too");
    const bool restored = dup2(saved, STDERR_FILENO) == STDERR_FILENO;
    assert_true(moved && restored);
    got = read(ends[0], text, sizeof(text) - 1);
    assert_true(got > 0);
    text[got] = '\0';
    assert_matches("heard \\(lines lost before this: 2\\)\n.*heard too\n$");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(close(saved), 0);
}

static void a_pipe_that_another_process_fills_meanwhile_does_not_block(void **state)
{
    (void)state;
    int ends[2];
    char other_end[32];
    const int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)snprintf(other_end, sizeof(other_end), "/proc/self/fd/%d", ends[1]);
    const bool moved = dup2(ends[1], STDERR_FILENO) == STDERR_FILENO;
    filled = open(other_end, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    (void)alarm(20); /* a write that waits has no other end */
    log_error(LOG_INFO, "lost");
    (void)alarm(0);
    const bool emptied = close(filled) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
    filled = -1;
    while (read(ends[0], text, sizeof(text)) > 0)
        continue;
    log_error(LOG_INFO, "heard");
    const bool restored = dup2(saved, STDERR_FILENO) == STDERR_FILENO;
    assert_true(moved && restored && emptied);
    const ssize_t got = read(ends[0], text, sizeof(text) - 1);
    assert_true(got > 0);
    text[got] = '\0';
    assert_matches("heard \\(lines lost before this: 1\\)\n$");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(close(saved), 0);
}

enum { THREADS = 4, LINES = 200 };

static void *say_much(void *argument)
{
    for (unsigned i = 0; i < LINES; i++)
        log_error(LOG_INFO, "thread %s line %u of it", (const char *)argument, i);
    return NULL;
}

static void lines_of_several_threads_stay_whole(void **state)
{
    (void)state;
    static char names[THREADS][2] = { "a", "b", "c", "d" };
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, say_much, names[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)read_log(path);
    assert_int_equal(count_lines(), THREADS * LINES);
    assert_matches("^(" TIME " info \\[[0-9]+\\] thread [a-d] line [0-9]+ of it\n)+$");
}

/* The files of this process can grow by 10 bytes more. */
static _Noreturn void tear_a_line(void)
{
    const struct rlimit limit = { .rlim_cur = read_log(path) + 10, .rlim_max = RLIM_INFINITY };
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(10);
    log_error(LOG_ERROR, "torn");
    _exit(read_log(path) == limit.rlim_cur ? 0 : 11);
}

static void a_line_torn_by_another_process_takes_no_line_with_it(void **state)
{
    (void)state;
    log_error(LOG_ERROR, "first");
    const pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0)
        tear_a_line();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    log_error(LOG_ERROR, "second");
    log_error(LOG_ERROR, "third");
    (void)read_log(path);
    assert_matches("^" TIME " [^\n]* first\n" /* 10 bytes of the torn line */
                   "[0-9]{4}-[01][0-9]-[0-3][0-9]\n" TIME " [^\n]* second\n" TIME
                   " [^\n]* third\n$");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_and_process, open_log, close_log),
        cmocka_unit_test_setup_teardown(only_lines_of_the_level_or_above_are_written, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(escapes_control_bytes_and_no_text, open_log, close_log),
        cmocka_unit_test_setup_teardown(marks_a_long_line_that_is_cut, open_log, close_log),
        cmocka_unit_test_setup_teardown(keeps_errno_and_can_print_it, open_log, close_log),
        cmocka_unit_test_setup_teardown(limits_how_often_a_line_is_written, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_rotated_log_continues_in_a_new_file, open_log, close_log),
        cmocka_unit_test_setup_teardown(errors_can_be_diverted_to_the_caller, open_log, close_log),
        cmocka_unit_test_teardown(lines_go_to_standard_error_without_a_file, close_log),
        cmocka_unit_test_teardown(a_full_pipe_loses_lines_and_reports_how_many, close_log),
        cmocka_unit_test_teardown(a_pipe_that_another_process_fills_meanwhile_does_not_block,
                                  close_log),
        cmocka_unit_test_setup_teardown(lines_of_several_threads_stay_whole, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_line_torn_by_another_process_takes_no_line_with_it,
                                        open_log, close_log),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
