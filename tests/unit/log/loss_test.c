/* SPDX-License-Identifier: MIT
 *
 * The error log reports the first lost line of the access log, and the number when the loss is
 * over. It says nothing in between, and processes that share the state report each loss once.
 */
#include "log/loss.h"

#include "base/duration.h"
#include "log/access.h"
#include "log/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALM_NS (LOG_LOSS_CALM_S * DURATION_SECOND)

static char path[] = P_tmpdir "/weir-loss-XXXXXX";
static char text[8192];

static int open_error_log(void **state)
{
    (void)state;
    const int made = mkstemp(path);
    if (made < 0 || close(made) != 0)
        return -1;
    const int fd = log_error_open(path, NULL);
    if (fd < 0)
        return -1;
    log_error_use(fd, path, LOG_INFO);
    return 0;
}

static int remove_error_log(void **state)
{
    (void)state;
    log_error_use(STDERR_FILENO, "-", LOG_INFO);
    return unlink(path);
}

static int empty_error_log(void **state)
{
    (void)state;
    return truncate(path, 0);
}

static unsigned lines_with(const char *what)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t len = read(fd, text, sizeof(text) - 1);
    assert_true(len >= 0);
    assert_int_equal(close(fd), 0);
    text[len] = '\0';
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

static void reports_the_first_lost_line_and_no_other(void **state)
{
    (void)state;
    struct log_loss loss = { 0 };
    log_loss_add(&loss, 1, "the disk is full", 5);
    assert_int_equal(lines_with("\n"), 1);
    assert_int_equal(lines_with(" warning "), 1);
    assert_int_equal(lines_with("lines of the access log are lost: the disk is full; "), 1);
    for (unsigned i = 0; i < 1000; i++)
        log_loss_add(&loss, 3, "the disk is full", 6 + i);
    assert_int_equal(lines_with("\n"), 1);
    assert_true(log_loss_is_open(&loss));
}

static void reports_the_number_once_no_line_has_been_lost_for_a_time(void **state)
{
    (void)state;
    struct log_loss loss = { 0 };
    log_loss_settle(&loss, CALM_NS);
    assert_int_equal(lines_with("\n"), 0);
    log_loss_add(&loss, 2, "the disk is full", 100);
    log_loss_settle(&loss, 100 + CALM_NS - 1);
    log_loss_add(&loss, 3, "the disk is full", 100 + CALM_NS);
    log_loss_settle(&loss, 100 + 2 * CALM_NS - 1);
    assert_int_equal(lines_with("\n"), 1);
    log_loss_settle(&loss, 100 + 2 * CALM_NS);
    log_loss_settle(&loss, 100 + 3 * CALM_NS);
    assert_int_equal(lines_with("\n"), 2);
    assert_int_equal(lines_with("the access log is written again; 5 lines were lost\n"), 1);
    assert_false(log_loss_is_open(&loss));
}

static void a_later_loss_is_reported_again(void **state)
{
    (void)state;
    struct log_loss loss = { 0 };
    log_loss_add(&loss, 2, "the disk is full", 100);
    log_loss_settle(&loss, 100 + CALM_NS);
    log_loss_add(&loss, 1, "the reader is gone", 101 + CALM_NS);
    assert_int_equal(lines_with("are lost: the reader is gone; "), 1);
    log_loss_settle(&loss, 101 + 2 * CALM_NS);
    assert_int_equal(lines_with("the access log is written again; 1 line was lost\n"), 1);
}

/* A log that cannot take a line: /dev/full. In a process of its own, as in the model `fork`. */
static void lose_a_line(struct log_access_sink *sink)
{
    static const struct log_access_line line = { .status = 200 };
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct log_access log;
        if (log_access_start(&log, sink) != 0)
            _exit(1);
        log_access_add(&log, &line, 0);
        log_access_flush(&log);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void processes_report_a_loss_once(void **state)
{
    (void)state;
    struct log_access_sink sink;
    assert_int_equal(log_access_open(&sink, "/dev/full", NULL, NULL), 0);
    sink.loss = log_loss_new();
    lose_a_line(&sink);
    lose_a_line(&sink);
    lose_a_line(&sink);
    assert_int_equal(lines_with("\n"), 1);
    assert_int_equal(lines_with("are lost: No space left on device; "), 1);
    log_loss_end(sink.loss);
    assert_int_equal(lines_with(" 3 lines of the access log were lost before the end\n"), 1);
    assert_int_equal(lines_with("\n"), 2);
    log_access_close(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reports_the_first_lost_line_and_no_other, empty_error_log),
        cmocka_unit_test_setup(reports_the_number_once_no_line_has_been_lost_for_a_time,
                               empty_error_log),
        cmocka_unit_test_setup(a_later_loss_is_reported_again, empty_error_log),
        cmocka_unit_test_setup(processes_report_a_loss_once, empty_error_log),
    };
    return cmocka_run_group_tests(tests, open_error_log, remove_error_log);
}
