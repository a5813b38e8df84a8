/* SPDX-License-Identifier: MIT
 *
 * A large file over TLS whose pages are not in memory. They are read when the test says so.
 */
#include "secured.h"

#include "site/pages.h"
#include "task/task.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>

enum { WAIT_MS = 60 * 1000, WINDOW = 2 << 20, HUGE_SIZE = WINDOW + BIG_SIZE };

static struct task_home home;
static bool cold;  /* from WINDOW on, no page is in memory, and somebody has asked for one */
static sem_t disk; /* each post lets it read once */

bool __wrap_site_pages_in_memory(int fd, uint64_t at, uint64_t end);
void __wrap_site_pages_read(int fd, uint64_t at, uint64_t end);

void __wrap_site_pages_read(int fd, uint64_t at, uint64_t end)
{
    (void)fd;
    (void)at;
    (void)end;
    while (sem_wait(&disk) < 0) /* after a signal */
        continue;
}

bool __wrap_site_pages_in_memory(int fd, uint64_t at, uint64_t end)
{
    (void)fd;
    (void)end;
    cold = at >= WINDOW;
    return !cold;
}

static int make_cold_world(void **state)
{
    const struct task_limits lanes[TASK_LANES] = {
        { 1, 1 },
        [TASK_FETCHES] = { 1, 1 },
        [TASK_LISTINGS] = { 1, 1 },
    };
    if (make_secured_world(state) < 0 || sem_init(&disk, 0, 0) < 0)
        return -1;
    write_file("huge.bin", HUGE_SIZE, 'h');
    world.shared.tasks = task_pool_new(lanes);
    home = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    session_thread_use_home(&world.thread, &home);
    return world.shared.tasks && home.wake_fd >= 0 ? 0 : -1;
}

static int end_cold_world(void **state)
{
    end_tasks();
    close(home.wake_fd);
    (void)sem_destroy(&disk);
    remove_file("huge.bin");
    return end_secured_world(state);
}

/* Lets the disk read, waits for that, and tells the session. */
static void read_pages(struct talk *t)
{
    struct pollfd wake = { .fd = home.wake_fd, .events = POLLIN };
    eventfd_t ignored;
    assert_int_equal(sem_post(&disk), 0);
    assert_int_equal(poll(&wake, 1, WAIT_MS), 1);
    assert_int_equal(eventfd_read(home.wake_fd, &ignored), 0);
    assert_ptr_equal(session_thread_next_ready(&world.thread), &t->session);
    t->want = session_resume(&t->session, world.now_ns);
}

static void request_huge(struct talk *t)
{
    cold = false;
    open_talk(t);
    shake(t);
    ask(t, GET("/huge.bin"));
    t->step = 4096;
}

static void close_huge(struct talk *t)
{
    assert_int_equal(t->want, SESSION_READ);
    assert_int_equal(fflush(t->received), 0);
    assert_true(t->len > HUGE_SIZE);
    close_talk(t);
}

static void pages_that_are_read_after_the_records_have_left_are_sent(void **state)
{
    (void)state;
    struct talk t;
    request_huge(&t);
    while (t.want & SESSION_WRITE)
        receive_some(&t);
    assert_true(cold);
    assert_int_equal(t.want, SESSION_WAIT);
    read_pages(&t);
    receive_all(&t);
    close_huge(&t);
}

/* Nobody tells the session again when the records have left. */
static void pages_that_are_read_while_records_wait_are_sent(void **state)
{
    (void)state;
    struct talk t;
    request_huge(&t);
    while (!cold)
        receive_some(&t);
    assert_true(session_tls_has_output(&t.session));
    read_pages(&t);
    receive_all(&t);
    close_huge(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pages_that_are_read_after_the_records_have_left_are_sent,
                                        make_cold_world, end_cold_world),
        cmocka_unit_test_setup_teardown(pages_that_are_read_while_records_wait_are_sent,
                                        make_cold_world, end_cold_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
