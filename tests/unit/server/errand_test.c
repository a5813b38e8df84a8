/* SPDX-License-Identifier: MIT
 *
 * Processes that wait for a disk in place of the master: the errand itself, and the trial before a
 * reload.
 */
#include "server/errand.h"

#include "base/duration.h"
#include "server/master.h"
#include "server/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW_NS = 1000 };

/* Waits for the end of a process, and reports it. */
static void reap_process(struct server_errand *errand, pid_t pid)
{
    assert_true(pid > 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(server_errand_has_process(errand));
    assert_true(server_errand_reap(errand, pid, status));
    assert_false(server_errand_reap(errand, pid, status));
}

static void reap(struct server_errand *errand)
{
    reap_process(errand, errand->pid);
}

static int read_waiting(struct server_errand *errand, int *record)
{
    struct pollfd end = { .fd = errand->fd, .events = POLLIN };
    assert_int_equal(poll(&end, 1, -1), 1);
    return server_errand_read(errand, record, sizeof(*record));
}

static void write_two(void *context, int fd)
{
    const int *first = context;
    const int records[] = { *first, *first + 1 };
    (void)!write(fd, records, sizeof(records));
}

static void what_the_process_writes_is_read_in_order(void **state)
{
    (void)state;
    struct server_errand errand = SERVER_ERRAND_NONE;
    int first = 7, record = 0;
    assert_int_equal(server_errand_begin(&errand, write_two, &first), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_waiting(&errand, &record), 1);
        assert_int_equal(record, first + i);
    }
    assert_int_equal(read_waiting(&errand, &record), -1);
    assert_int_equal(errand.fd, -1);
    reap(&errand);
}

static void tell_open(void *context, int fd)
{
    const int *other = context;
    const int is_open = fcntl(*other, F_GETFD) >= 0 && *other != fd;
    (void)!write(fd, &is_open, sizeof(is_open));
}

static void the_process_has_no_other_descriptor(void **state)
{
    (void)state;
    struct server_errand errand = SERVER_ERRAND_NONE;
    int is_open = -1, other = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 20);
    assert_true(other >= 20);
    assert_int_equal(server_errand_begin(&errand, tell_open, &other), 0);
    assert_int_equal(read_waiting(&errand, &is_open), 1);
    assert_int_equal(is_open, 0);
    server_errand_close(&errand);
    reap(&errand);
    (void)close(other);
}

static void hang(void *context, int fd)
{
    (void)context;
    (void)fd;
    for (;;)
        pause();
}

static void a_process_that_waits_stops_nobody(void **state)
{
    (void)state;
    struct server_errand errand = SERVER_ERRAND_NONE;
    int record;
    assert_int_equal(server_errand_begin(&errand, hang, NULL), 0);
    assert_int_equal(server_errand_read(&errand, &record, sizeof(record)), 0);
    server_errand_close(&errand);
    assert_false(server_errand_reap(&errand, getpid(), 0));
    assert_int_equal(kill(errand.pid, SIGKILL), 0);
    reap(&errand);
}

static void as_many_errands_as_are_noted_can_be_given_up(void **state)
{
    (void)state;
    struct server_errand errand = SERVER_ERRAND_NONE;
    for (int i = 0; i <= SERVER_ERRANDS_LEFT; i++) {
        assert_int_equal(errand.pid, 0);
        assert_int_equal(server_errand_begin(&errand, hang, NULL), 0);
        server_errand_give_up(&errand);
        assert_int_equal(errand.fd, -1);
    }
    const pid_t last = errand.pid;
    assert_true(last > 0);
    reap_process(&errand, errand.left[1]);
    server_errand_give_up(&errand);
    assert_int_equal(errand.pid, 0);
    assert_int_equal(errand.left[1], last);
    for (int i = 0; i < SERVER_ERRANDS_LEFT; i++)
        reap_process(&errand, errand.left[i]);
    assert_false(server_errand_has_process(&errand));
}

static void without_descriptors_there_is_no_errand(void **state)
{
    (void)state;
    struct server_errand errand = SERVER_ERRAND_NONE;
    int held[1024], count = 0;
    while (count < 1024 && (held[count] = dup(STDIN_FILENO)) >= 0)
        count++;
    if (count < 1024)
        assert_int_equal(server_errand_begin(&errand, hang, NULL), -EMFILE);
    assert_int_equal(errand.fd, -1);
    assert_int_equal(errand.pid, 0);
    while (count > 0)
        (void)close(held[--count]);
}

/* ---- the trial ---- */

static struct config_store *read_nothing(void *context)
{
    (void)context;
    _exit(0);
}

static struct config_store *read_for_ever(void *context)
{
    hang(context, -1);
    return NULL;
}

static enum server_trial_result result_of(struct server_trial *trial, uint64_t now_ns)
{
    char why[SERVER_TRIAL_WHY_MAX];
    return server_trial_result(trial, now_ns, why);
}

static void a_trial_passes_when_its_process_has_ended(void **state)
{
    (void)state;
    const struct server_master_launch launch = { .read = read_nothing };
    struct server_trial trial = SERVER_TRIAL_NONE;
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_NO_RESULT);
    assert_false(server_trial_is_open(&trial));

    server_trial_begin(&trial, &launch, NULL, NULL, NOW_NS);
    assert_true(server_trial_is_awaited(&trial));
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_NO_RESULT);
    assert_int_equal(server_trial_due_ns(&trial, UINT64_MAX),
                     NOW_NS + SERVER_TRIAL_S * DURATION_SECOND);
    reap(&trial.errand);
    assert_int_equal(server_trial_due_ns(&trial, UINT64_MAX), 0);
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_PASSED);
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_NO_RESULT);
    assert_int_equal(server_trial_due_ns(&trial, UINT64_MAX), UINT64_MAX);
    assert_false(server_trial_is_open(&trial));
}

static struct config_store *die(void *context)
{
    (void)context;
    (void)raise(SIGKILL);
    return NULL;
}

/* The master would die in the same way. The next trial begins anew. */
static void a_trial_fails_when_its_process_is_killed(void **state)
{
    (void)state;
    const struct server_master_launch dies = { .read = die }, ends = { .read = read_nothing };
    struct server_trial trial = SERVER_TRIAL_NONE;
    char why[SERVER_TRIAL_WHY_MAX];
    server_trial_begin(&trial, &dies, NULL, NULL, NOW_NS);
    reap(&trial.errand);
    assert_int_equal(server_trial_result(&trial, NOW_NS, why), TRIAL_FAILED);
    assert_non_null(strstr(why, "signal 9"));
    assert_false(server_trial_is_open(&trial));
    server_trial_begin(&trial, &ends, NULL, NULL, NOW_NS);
    reap(&trial.errand);
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_PASSED);
}

static void a_trial_fails_at_its_limit(void **state)
{
    (void)state;
    const struct server_master_launch launch = { .read = read_for_ever };
    const uint64_t limit_ns = NOW_NS + SERVER_TRIAL_S * DURATION_SECOND;
    struct server_trial trial = SERVER_TRIAL_NONE;
    server_trial_begin(&trial, &launch, NULL, NULL, NOW_NS);
    const pid_t pid = trial.errand.pid;
    assert_int_equal(result_of(&trial, limit_ns - 1), TRIAL_NO_RESULT);
    assert_int_equal(result_of(&trial, limit_ns), TRIAL_FAILED);
    assert_false(server_trial_is_awaited(&trial));
    assert_true(server_trial_is_open(&trial));
    reap_process(&trial.errand, pid);
    assert_false(server_trial_is_open(&trial));
}

static void a_trial_fails_at_once_when_too_many_processes_wait(void **state)
{
    (void)state;
    const struct server_master_launch launch = { .read = read_for_ever };
    struct server_trial trial = SERVER_TRIAL_NONE;
    for (int i = 0; i <= SERVER_ERRANDS_LEFT; i++) {
        server_trial_begin(&trial, &launch, NULL, NULL, NOW_NS);
        assert_int_equal(result_of(&trial, UINT64_MAX), TRIAL_FAILED);
    }
    const pid_t last = trial.errand.pid;
    server_trial_begin(&trial, &launch, NULL, NULL, NOW_NS);
    assert_int_equal(result_of(&trial, NOW_NS), TRIAL_FAILED);
    assert_int_equal(trial.errand.pid, last);
    reap(&trial.errand);
    for (int i = 0; i < SERVER_ERRANDS_LEFT; i++)
        reap_process(&trial.errand, trial.errand.left[i]);
}

static void an_abandoned_trial_has_no_result(void **state)
{
    (void)state;
    const struct server_master_launch launch = { .read = read_nothing };
    struct server_trial trial = SERVER_TRIAL_NONE;
    server_trial_begin(&trial, &launch, NULL, NULL, NOW_NS);
    const pid_t pid = trial.errand.pid;
    server_trial_abandon(&trial);
    assert_int_equal(result_of(&trial, UINT64_MAX), TRIAL_NO_RESULT);
    reap_process(&trial.errand, pid);
    assert_int_equal(result_of(&trial, UINT64_MAX), TRIAL_NO_RESULT);
    assert_false(server_trial_is_open(&trial));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_process_writes_is_read_in_order),
        cmocka_unit_test(the_process_has_no_other_descriptor),
        cmocka_unit_test(a_process_that_waits_stops_nobody),
        cmocka_unit_test(as_many_errands_as_are_noted_can_be_given_up),
        cmocka_unit_test(without_descriptors_there_is_no_errand),
        cmocka_unit_test(a_trial_passes_when_its_process_has_ended),
        cmocka_unit_test(a_trial_fails_when_its_process_is_killed),
        cmocka_unit_test(a_trial_fails_at_its_limit),
        cmocka_unit_test(a_trial_fails_at_once_when_too_many_processes_wait),
        cmocka_unit_test(an_abandoned_trial_has_no_result),
    };
    return cmocka_run_group_tests_name("server/errand", tests, NULL, NULL);
}
