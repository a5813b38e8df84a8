/* SPDX-License-Identifier: MIT */
#include "task/task.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct task_pool {
    pthread_mutex_t lock;
    pthread_cond_t queued; /* a task waits, or the pool stops */
    pthread_cond_t left;   /* a thread has ended */
    struct task *first;    /* in the queue */
    unsigned queue_count, queue_max;
    unsigned threads, threads_max;
    unsigned waiting, running; /* of the threads */
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

static void append(struct task **list, struct task *task)
{
    while (*list)
        list = &(*list)->next;
    task->next = NULL;
    *list = task;
}

static void unlink_task(struct task **list, const struct task *task)
{
    while (*list != task)
        list = &(*list)->next;
    *list = task->next;
}

/* ---- threads ---- */

static void destroy_pool(struct task_pool *pool)
{
    CHECK(pthread_cond_destroy(&pool->queued) == 0);
    CHECK(pthread_cond_destroy(&pool->left) == 0);
    CHECK(pthread_mutex_destroy(&pool->lock) == 0);
    free(pool);
}

/* A list that has tasks already has woken its loop. */
static void end_task(struct task *task)
{
    if (task->state == TASK_CANCELLED) {
        task->drop(task);
        return;
    }
    struct task_home *home = task->home;
    const uint64_t one = 1;
    const bool wakes = home->first == NULL;
    task->state = TASK_DONE;
    task->listed = true;
    append(&home->first, task);
    if (wakes)
        (void)!write(home->wake_fd, &one, sizeof(one)); /* fails only when the count is full */
}

static void run_first(struct task_pool *pool)
{
    struct task *task = pool->first;
    pool->first = task->next;
    pool->queue_count--;
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
    struct task_pool *pool = argument;
    enter(pool);
    while (!pool->stopping) {
        if (pool->first) {
            run_first(pool);
            continue;
        }
        pool->waiting++;
        CHECK(pthread_cond_wait(&pool->queued, &pool->lock) == 0);
        pool->waiting--;
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
static bool has_thread(struct task_pool *pool)
{
    pthread_attr_t attributes;
    pthread_t id;
    if (pool->waiting > pool->queue_count || pool->threads == pool->threads_max)
        return true;
    if (pthread_attr_init(&attributes) != 0)
        return pool->threads > 0;
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    if (pthread_create(&id, &attributes, run_tasks, pool) == 0)
        pool->threads++;
    (void)pthread_attr_destroy(&attributes); /* cannot fail on Linux */
    return pool->threads > 0;
}

/* ---- the pool ---- */

struct task_pool *task_pool_new(unsigned threads_max, unsigned queue_max)
{
    struct task_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->threads_max = threads_max;
    pool->queue_max = queue_max;
    CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    CHECK(pthread_cond_init(&pool->queued, NULL) == 0);
    CHECK(pthread_cond_init(&pool->left, NULL) == 0);
    return pool;
}

void task_pool_free(struct task_pool *pool)
{
    if (!pool)
        return;
    enter(pool);
    pool->stopping = true;
    CHECK(pthread_cond_broadcast(&pool->queued) == 0);
    while (pool->threads > pool->running)
        CHECK(pthread_cond_wait(&pool->left, &pool->lock) == 0);
    pool->orphaned = pool->threads > 0;
    const bool over = !pool->orphaned;
    leave(pool);
    if (over)
        destroy_pool(pool);
}

bool task_submit(struct task_pool *pool, struct task *task)
{
    enter(pool);
    const bool taken = pool->queue_count < pool->queue_max && has_thread(pool);
    if (taken) {
        task->state = TASK_QUEUED;
        append(&pool->first, task);
        pool->queue_count++;
        CHECK(pthread_cond_signal(&pool->queued) == 0);
    }
    leave(pool);
    return taken;
}

void task_cancel(struct task_pool *pool, struct task *task)
{
    enter(pool);
    const bool runs = task->state == TASK_RUNNING;
    if (task->state == TASK_QUEUED) {
        unlink_task(&pool->first, task);
        pool->queue_count--;
    } else if (task->listed) {
        unlink_task(&task->home->first, task);
    }
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
    struct task *task = home->first;
    if (task) {
        home->first = task->next;
        task->listed = false;
        owner = task->owner;
    }
    leave(pool);
    return owner;
}
