/* SPDX-License-Identifier: MIT */
#include "task/task.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct lane {
    struct task_pool *pool;
    pthread_cond_t queued; /* a task waits, or the pool stops */
    struct task_list queue;
    struct task_limits limits;
    unsigned queue_count;
    unsigned threads, waiting;
};

struct task_pool {
    pthread_mutex_t lock;
    pthread_cond_t left; /* a thread has ended */
    struct lane lane[TASK_LANES];
    unsigned threads, running; /* of all lanes */
    bool stopping;
    bool orphaned; /* the last thread frees the pool */
};

static void enter(struct task_pool *pool)
{
    CHECK(pthread_mutex_lock(&pool->lock) == 0);
}

static void leave(struct task_pool *pool)
{
    CHECK(pthread_mutex_unlock(&pool->lock) == 0);
}

/* ---- lists ---- */

static void append(struct task_list *list, struct task *task)
{
    task->next = NULL;
    if (list->first)
        list->last->next = task;
    else
        list->first = task;
    list->last = task;
}

static struct task *take_first(struct task_list *list)
{
    struct task *task = list->first;
    list->first = task->next;
    return task;
}

static void unlink_task(struct task_list *list, const struct task *task)
{
    struct task *before = NULL;
    for (struct task *each = list->first; each != task; each = each->next)
        before = each;
    if (before)
        before->next = task->next;
    else
        list->first = task->next;
    if (list->last == task)
        list->last = before;
}

/* ---- threads ---- */

static void destroy_pool(struct task_pool *pool)
{
    for (int i = 0; i < TASK_LANES; i++)
        CHECK(pthread_cond_destroy(&pool->lane[i].queued) == 0);
    CHECK(pthread_cond_destroy(&pool->left) == 0);
    CHECK(pthread_mutex_destroy(&pool->lock) == 0);
    free(pool);
}

/* A list that has tasks already has woken its loop. */
static void report_done(struct task *task)
{
    struct task_home *home = task->home;
    const uint64_t one = 1;
    const bool wakes = home->done.first == NULL;
    task->state = TASK_DONE;
    task->listed = true;
    append(&home->done, task);
    if (wakes)
        (void)!write(home->wake_fd, &one, sizeof(one)); /* fails only when the count is full */
}

static void end_task(struct task *task)
{
    if (task->state == TASK_CANCELLED || !task->home)
        task->drop(task);
    else
        report_done(task);
}

static void run_first(struct lane *lane)
{
    struct task_pool *pool = lane->pool;
    struct task *task = take_first(&lane->queue);
    lane->queue_count--;
    pool->running++;
    task->state = TASK_RUNNING;
    leave(pool);
    task->run(task);
    enter(pool);
    pool->running--;
    end_task(task);
}

static void *run_tasks(void *argument)
{
    struct lane *lane = argument;
    struct task_pool *pool = lane->pool;
    enter(pool);
    while (!pool->stopping) {
        if (lane->queue.first) {
            run_first(lane);
            continue;
        }
        lane->waiting++;
        CHECK(pthread_cond_wait(&lane->queued, &pool->lock) == 0);
        lane->waiting--;
    }
    pool->threads--;
    const bool last = pool->orphaned && pool->threads == 0;
    CHECK(pthread_cond_signal(&pool->left) == 0);
    leave(pool);
    if (last)
        destroy_pool(pool);
    return NULL;
}

/* Starts a thread if no waiting one would take the next task. False: there is no thread. */
static bool has_thread(struct lane *lane)
{
    pthread_attr_t attributes;
    pthread_t id;
    if (lane->waiting > lane->queue_count || lane->threads == lane->limits.threads_max)
        return true;
    if (pthread_attr_init(&attributes) != 0)
        return lane->threads > 0;
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    if (pthread_create(&id, &attributes, run_tasks, lane) == 0) {
        lane->threads++;
        lane->pool->threads++;
    }
    (void)pthread_attr_destroy(&attributes); /* cannot fail on Linux */
    return lane->threads > 0;
}

/* ---- the pool ---- */

struct task_pool *task_pool_new(const struct task_limits limits[TASK_LANES])
{
    struct task_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    CHECK(pthread_cond_init(&pool->left, NULL) == 0);
    for (int i = 0; i < TASK_LANES; i++) {
        struct lane *lane = &pool->lane[i];
        lane->pool = pool;
        lane->limits = limits[i];
        CHECK(pthread_cond_init(&lane->queued, NULL) == 0);
    }
    return pool;
}

void task_pool_free(struct task_pool *pool)
{
    if (!pool)
        return;
    enter(pool);
    pool->stopping = true;
    for (int i = 0; i < TASK_LANES; i++)
        CHECK(pthread_cond_broadcast(&pool->lane[i].queued) == 0);
    while (pool->threads > pool->running)
        CHECK(pthread_cond_wait(&pool->left, &pool->lock) == 0);
    pool->orphaned = pool->threads > 0;
    const bool over = !pool->orphaned;
    leave(pool);
    if (over)
        destroy_pool(pool);
}

bool task_submit(struct task_pool *pool, enum task_lane number, struct task *task)
{
    struct lane *lane = &pool->lane[number];
    enter(pool);
    const bool taken = lane->queue_count < lane->limits.queue_max && has_thread(lane);
    if (taken) {
        task->state = TASK_QUEUED;
        task->lane = (uint8_t)number;
        append(&lane->queue, task);
        lane->queue_count++;
        CHECK(pthread_cond_signal(&lane->queued) == 0);
    }
    leave(pool);
    return taken;
}

void task_finish(struct task_pool *pool, struct task *task)
{
    enter(pool);
    if (!task->listed)
        report_done(task);
    leave(pool);
}

static void unlist_task(struct task *task)
{
    if (task->listed)
        unlink_task(&task->home->done, task);
    task->listed = false;
}

void task_forget(struct task_pool *pool, struct task *task)
{
    enter(pool);
    unlist_task(task);
    leave(pool);
}

void task_cancel(struct task_pool *pool, struct task *task)
{
    enter(pool);
    const bool runs = task->state == TASK_RUNNING;
    if (task->state == TASK_QUEUED) {
        struct lane *lane = &pool->lane[task->lane];
        unlink_task(&lane->queue, task);
        lane->queue_count--;
    }
    unlist_task(task);
    if (runs)
        task->state = TASK_CANCELLED;
    leave(pool);
    if (!runs)
        task->drop(task);
}

bool task_is_done(struct task_pool *pool, const struct task *task)
{
    enter(pool);
    const bool done = task->state == TASK_DONE;
    leave(pool);
    return done;
}

void *task_next_done(struct task_pool *pool, struct task_home *home)
{
    void *owner = NULL;
    enter(pool);
    if (home->done.first) {
        struct task *task = take_first(&home->done);
        task->listed = false;
        owner = task->owner;
    }
    leave(pool);
    return owner;
}
