/* SPDX-License-Identifier: MIT
 *
 * The end of a log file that several processes append to. A line that one process has not finished
 * takes no line of another with it, also after that process has died, and whatever a hostile
 * process writes to the shared word.
 */
#include "log/tail.h"

#include "log/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WALL_S = 971211336 };

static const char line_text[] =
    "- - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 - \"-\" \"-\" 0000000000000001\n";

enum { LINE_LEN = sizeof(line_text) - 1 };

struct fixture {
    char path[48];
    struct log_access_sink sink;
    struct log_access log;
};

static void open_log(struct fixture *f)
{
    assert_int_equal(log_access_open(&f->sink, f->path, NULL, NULL), 0);
    assert_int_equal(log_access_start(&f->log, &f->sink), 0);
}

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){ .path = P_tmpdir "/weir-tail-XXXXXX" };
    const int fd = mkstemp(f.path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    log_access_stop(&f->log);
    log_access_close(&f->sink);
    return unlink(f->path);
}

static void add_lines(struct fixture *f, unsigned count)
{
    const struct log_access_line line = { .request_line = SPAN("GET / HTTP/1.1"),
                                          .status = 200,
                                          .id = 1 };
    for (unsigned i = 0; i < count; i++)
        log_access_add(&f->log, &line, WALL_S);
    log_access_flush(&f->log);
}

static void assert_file(const struct fixture *f, const char *want)
{
    char got[4096];
    FILE *file = fopen(f->path, "r");
    assert_non_null(file);
    const size_t len = fread(got, 1, sizeof(got) - 1, file);
    got[len] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(got, want);
}

/* Runs `work` in another process, which ends without releasing anything. */
static void in_another_process(struct fixture *f, void (*work)(struct fixture *f))
{
    const pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0) {
        work(f);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The files of this process can hold a line and a half. */
static void tear_a_line(struct fixture *f)
{
    const struct rlimit limit = { .rlim_cur = LINE_LEN + LINE_LEN / 2, .rlim_max = RLIM_INFINITY };
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(10);
    add_lines(f, 3);
    if (f->sink.dropped != 2)
        _exit(11);
}

static void a_line_torn_by_another_process_takes_no_line_with_it(void **state)
{
    struct fixture *f = *state;
    char want[1024];
    open_log(f);
    in_another_process(f, tear_a_line);
    add_lines(f, 1);
    (void)snprintf(want, sizeof(want), "%s%.*s\n%s", line_text, LINE_LEN / 2, line_text, line_text);
    assert_file(f, want);
    add_lines(f, 1); /* no empty line follows */
    (void)snprintf(want, sizeof(want), "%s%.*s\n%s%s", line_text, LINE_LEN / 2, line_text,
                   line_text, line_text);
    assert_file(f, want);
    assert_int_equal(f->sink.dropped, 0);
}

static void die_in_a_turn(struct fixture *f)
{
    (void)log_tail_claim(f->sink.tail, &f->sink.wait_again_ns);
    if (write(f->sink.fd, "half", 4) != 4)
        _exit(10);
}

static void a_process_that_dies_while_it_writes_stops_no_other(void **state)
{
    struct fixture *f = *state;
    char want[1024];
    open_log(f);
    in_another_process(f, die_in_a_turn);
    add_lines(f, 1);
    add_lines(f, 1);
    (void)snprintf(want, sizeof(want), "half\n%s%s", line_text, line_text);
    assert_file(f, want);
    assert_true(f->sink.wait_again_ns > 0);
}

static void any_value_of_the_word_costs_at_most_an_empty_line(void **state)
{
    struct fixture *f = *state;
    char want[4096] = "";
    open_log(f);
    add_lines(f, 1);
    (void)strcat(want, line_text);
    for (unsigned bit = 0; bit < 32; bit++) {
        atomic_store(&f->sink.tail->state, UINT32_C(1) << bit);
        const struct log_tail_turn turn = log_tail_claim(f->sink.tail, &f->sink.wait_again_ns);
        log_tail_release(turn, false);
        assert_int_equal(atomic_load(&f->sink.tail->state), 0);
    }
    atomic_store(&f->sink.tail->state, UINT32_MAX);
    add_lines(f, 1);
    (void)strcat(want, "\n");
    (void)strcat(want, line_text);
    add_lines(f, 1);
    (void)strcat(want, line_text);
    assert_file(f, want);
}

static void a_word_that_was_taken_away_leaves_doubt(void **state)
{
    struct fixture *f = *state;
    open_log(f);
    const struct log_tail_turn slow = log_tail_claim(f->sink.tail, &f->sink.wait_again_ns);
    assert_false(slow.torn);
    const struct log_tail_turn fast = log_tail_claim(f->sink.tail, &f->sink.wait_again_ns);
    assert_true(fast.torn);
    log_tail_release(fast, false);
    log_tail_release(slow, false);
    const struct log_tail_turn next = log_tail_claim(f->sink.tail, &f->sink.wait_again_ns);
    assert_true(next.torn);
    log_tail_release(next, false);
}

static void write_half_a_line(const struct fixture *f)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_true(fputs("half", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_file_that_ends_inside_a_line_gets_a_newline_first(void **state)
{
    struct fixture *f = *state;
    char want[1024];
    write_half_a_line(f);
    open_log(f);
    add_lines(f, 1);
    add_lines(f, 1);
    (void)snprintf(want, sizeof(want), "half\n%s%s", line_text, line_text);
    assert_file(f, want);
}

static void an_empty_file_gets_no_newline_first(void **state)
{
    struct fixture *f = *state;
    open_log(f);
    log_tail_release(log_tail_claim(f->sink.tail, &f->sink.wait_again_ns), true);
    add_lines(f, 1);
    assert_file(f, line_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_torn_by_another_process_takes_no_line_with_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_that_dies_while_it_writes_stops_no_other, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(any_value_of_the_word_costs_at_most_an_empty_line, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_word_that_was_taken_away_leaves_doubt, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_ends_inside_a_line_gets_a_newline_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_empty_file_gets_no_newline_first, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
