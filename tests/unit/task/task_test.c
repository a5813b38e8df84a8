/* SPDX-License-Identifier: MIT
 *
 * Tasks in threads of their own: each is run once or dropped once, its home is woken, and a
 * cancelled one is never reported. Under TSan this tests the hand-over of results.
 */
#include "task/task.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 2, QUEUE = 8, WAIT_MS = 60 * 1000 };

/* A task that may be held in its `run`. */
struct job {
    struct task task;
    sem_t *hold; /* NULL: it does not wait */
    int input, result;
};

static _Atomic unsigned dropped, running;

static void run_job(struct task *task)
{
    struct job *job = (struct job *)task;
    atomic_fetch_add(&running, 1);
    if (job->hold)
        assert_int_equal(sem_wait(job->hold), 0);
    job->result = job->input * job->input;
}

static void drop_job(struct task *task)
{
    free(task);
    atomic_fetch_add(&dropped, 1);
}

static struct fixture {
    struct task_pool *pool;
    struct task_home home;
    sem_t hold;
} world;

static int set_up(void **state)
{
    (void)state;
    atomic_store(&dropped, 0);
    atomic_store(&running, 0);
    const struct task_limits limits = { THREADS, QUEUE };
    world.pool = task_pool_new((const struct task_limits[]){ limits, limits, limits });
    world.home = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    return world.pool && sem_init(&world.hold, 0, 0) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    task_pool_free(world.pool);
    close(world.home.wake_fd);
    return sem_destroy(&world.hold);
}

static struct job *new_job(int input, sem_t *hold)
{
    struct job *job = calloc(1, sizeof(*job));
    assert_non_null(job);
    job->task = (struct task){ .run = run_job, .drop = drop_job, .home = &world.home };
    job->task.owner = job;
    job->hold = hold;
    job->input = input;
    return job;
}

/* Waits for the wake-up, as a loop does, and returns the next task that is done. */
static struct job *next_done(void)
{
    struct job *job;
    while (!(job = task_next_done(world.pool, &world.home))) {
        struct pollfd end = { .fd = world.home.wake_fd, .events = POLLIN };
        uint64_t wakes;
        assert_int_equal(poll(&end, 1, WAIT_MS), 1);
        assert_int_equal(read(world.home.wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
    }
    return job;
}

static void wait_for(_Atomic unsigned *number, unsigned value)
{
    while (atomic_load(number) != value)
        usleep(1000);
}

static void a_task_is_run_and_its_home_woken(void **state)
{
    (void)state;
    for (int i = 1; i <= 100; i++) {
        struct job *job = new_job(i, NULL);
        assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &job->task));
        assert_ptr_equal(next_done(), job);
        assert_true(task_is_done(world.pool, &job->task));
        assert_int_equal(job->result, i * i);
        task_cancel(world.pool, &job->task);
    }
    assert_int_equal(atomic_load(&dropped), 100);
    assert_null(task_next_done(world.pool, &world.home));
}

/* As many tasks as threads run. Behind them the queue has a limit. */
static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct job *jobs[THREADS + QUEUE], *extra = new_job(0, NULL);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = new_job(i, &world.hold);
        assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &jobs[i]->task));
    }
    wait_for(&running, THREADS);
    for (int i = THREADS; i < THREADS + QUEUE; i++) {
        jobs[i] = new_job(i, &world.hold);
        assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &jobs[i]->task));
    }
    assert_false(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &extra->task));
    assert_int_equal(extra->task.state, TASK_NEW);
    free(extra);
    for (int i = 0; i < THREADS + QUEUE; i++)
        assert_int_equal(sem_post(&world.hold), 0);
    for (int i = 0; i < THREADS + QUEUE; i++) {
        struct job *job = next_done();
        assert_int_equal(job->result, job->input * job->input);
        task_cancel(world.pool, &job->task);
    }
    assert_int_equal(atomic_load(&dropped), THREADS + QUEUE);
}

/* The tasks of one disk all hang, and its queue is full. Only a disk beyond TASK_DISKS shares
 * it. */
static void a_disk_that_hangs_delays_no_other(void **state)
{
    (void)state;
    struct job *jobs[THREADS + QUEUE], *extra = new_job(0, NULL);
    for (int i = 0; i < THREADS + QUEUE; i++) {
        jobs[i] = new_job(i, &world.hold);
        assert_true(task_submit(world.pool, TASK_FETCHES, TASK_DISKS, &jobs[i]->task));
        if (i + 1 == THREADS)
            wait_for(&running, THREADS);
    }
    for (int disk = 1; disk < TASK_DISKS; disk++) {
        struct job *other = new_job(disk, NULL);
        assert_true(task_submit(world.pool, TASK_FETCHES, (uint64_t)disk, &other->task));
        assert_ptr_equal(next_done(), other);
        task_cancel(world.pool, &other->task);
    }
    assert_false(task_submit(world.pool, TASK_FETCHES, TASK_DISKS, &extra->task));
    assert_false(task_submit(world.pool, TASK_FETCHES, 3 * TASK_DISKS, &extra->task));
    free(extra);
    for (int i = 0; i < THREADS + QUEUE; i++)
        assert_int_equal(sem_post(&world.hold), 0);
    for (int i = 0; i < THREADS + QUEUE; i++)
        task_cancel(world.pool, &next_done()->task);
}

static void a_task_is_cancelled_in_each_state(void **state)
{
    (void)state;
    struct job *held[THREADS];
    for (int i = 0; i < THREADS; i++) {
        held[i] = new_job(i, &world.hold);
        assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &held[i]->task));
    }
    wait_for(&running, THREADS);

    struct job *queued[3]; /* the last, the middle and the first of the queue */
    for (int i = 0; i < 3; i++) {
        queued[i] = new_job(i, NULL);
        assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &queued[i]->task));
    }
    static const int order[3] = { 2, 1, 0 };
    for (int i = 0; i < 3; i++) {
        task_cancel(world.pool, &queued[order[i]]->task);
        assert_int_equal(atomic_load(&dropped), i + 1);
    }

    task_cancel(world.pool, &held[0]->task); /* it runs, so its thread drops it */
    assert_int_equal(atomic_load(&dropped), 3);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(sem_post(&world.hold), 0);
    wait_for(&dropped, 4);
    assert_ptr_equal(next_done(), held[1]);
    assert_null(task_next_done(world.pool, &world.home)); /* the cancelled one is not reported */
    task_cancel(world.pool, &held[1]->task);
    assert_int_equal(atomic_load(&dropped), 5);
}

static void a_done_task_that_is_cancelled_is_not_reported(void **state)
{
    (void)state;
    struct job *job = new_job(3, NULL);
    assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &job->task));
    while (!task_is_done(world.pool, &job->task))
        usleep(1000);
    task_cancel(world.pool, &job->task);
    assert_null(task_next_done(world.pool, &world.home));
    assert_int_equal(atomic_load(&dropped), 1);
}

/* The end of the pool does not wait for a task that runs. Its thread frees the pool. */
static void the_pool_ends_during_a_task(void **state)
{
    (void)state;
    struct job *job = new_job(3, &world.hold);
    assert_true(task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &job->task));
    wait_for(&running, 1);
    task_cancel(world.pool, &job->task);
    task_pool_free(world.pool);
    world.pool = NULL;
    assert_int_equal(atomic_load(&dropped), 0);
    assert_int_equal(sem_post(&world.hold), 0);
    wait_for(&dropped, 1);
}

/* ---- many threads ---- */

static void *submit_and_cancel(void *argument)
{
    struct task_home *home = argument;
    for (int i = 0; i < 2000; i++) {
        struct job *job = new_job(i, NULL);
        job->task.home = home;
        if (!task_submit(world.pool, TASK_COMPUTES, TASK_NO_DISK, &job->task)) {
            free(job);
            atomic_fetch_add(&dropped, 1);
            continue;
        }
        if (i % 3 == 0) {
            task_cancel(world.pool, &job->task);
            continue;
        }
        while (task_next_done(world.pool, home) != job)
            continue;
        assert_int_equal(job->result, i * i);
        task_cancel(world.pool, &job->task);
    }
    return NULL;
}

static void threads_submit_and_cancel_at_the_same_time(void **state)
{
    enum { LOOPS = 3 };
    (void)state;
    struct task_home homes[LOOPS];
    pthread_t threads[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        homes[i] = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
        assert_int_equal(pthread_create(&threads[i], NULL, submit_and_cancel, &homes[i]), 0);
    }
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    wait_for(&dropped, LOOPS * 2000);
    for (int i = 0; i < LOOPS; i++)
        close(homes[i].wake_fd);
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_POOL(a_task_is_run_and_its_home_woken),
        WITH_POOL(a_full_queue_refuses),
        WITH_POOL(a_disk_that_hangs_delays_no_other),
        WITH_POOL(a_task_is_cancelled_in_each_state),
        WITH_POOL(a_done_task_that_is_cancelled_is_not_reported),
        WITH_POOL(the_pool_ends_during_a_task),
        WITH_POOL(threads_submit_and_cancel_at_the_same_time),
    };
    return cmocka_run_group_tests_name("task/task", tests, NULL, NULL);
}
