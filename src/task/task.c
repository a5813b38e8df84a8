/* SPDX-License-Identifier: MIT */
#include "task/task.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct task_queue {
    struct task_pool *pool;
    pthread_cond_t queued; /* a task waits, or the pool stops */
    struct task_list tasks;
    struct task_limits limits;
    uint64_t disk;
    unsigned count; /* of `tasks` */
    unsigned threads, waiting;
};

struct lane {
    unsigned disks; /* so many queues have one */
    struct task_queue queue[TASK_DISKS];
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
        for (int k = 0; k < TASK_DISKS; k++)
            CHECK(pthread_cond_destroy(&pool->lane[i].queue[k].queued) == 0);
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

static void run_first(struct task_queue *queue)
{
    struct task_pool *pool = queue->pool;
    struct task *task = take_first(&queue->tasks);
    queue->count--;
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
    struct task_queue *queue = argument;
    struct task_pool *pool = queue->pool;
    enter(pool);
    while (!pool->stopping) {
        if (queue->tasks.first) {
            run_first(queue);
            continue;
        }
        queue->waiting++;
        CHECK(pthread_cond_wait(&queue->queued, &pool->lock) == 0);
        queue->waiting--;
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
static bool has_thread(struct task_queue *queue)
{
    pthread_attr_t attributes;
    pthread_t id;
    if (queue->waiting > queue->count || queue->threads == queue->limits.threads_max)
        return true;
    if (pthread_attr_init(&attributes) != 0)
        return queue->threads > 0;
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    if (pthread_create(&id, &attributes, run_tasks, queue) == 0) {
        queue->threads++;
        queue->pool->threads++;
    }
    (void)pthread_attr_destroy(&attributes); /* cannot fail on Linux */
    return queue->threads > 0;
}

/* ---- the pool ---- */

static void make_queue(struct task_pool *pool, struct task_queue *queue, struct task_limits limits)
{
    queue->pool = pool;
    queue->limits = limits;
    CHECK(pthread_cond_init(&queue->queued, NULL) == 0);
}

struct task_pool *task_pool_new(const struct task_limits limits[TASK_LANES])
{
    struct task_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    CHECK(pthread_mutex_init(&pool->lock, NULL) == 0);
    CHECK(pthread_cond_init(&pool->left, NULL) == 0);
    for (int i = 0; i < TASK_LANES; i++)
        for (int k = 0; k < TASK_DISKS; k++)
            make_queue(pool, &pool->lane[i].queue[k], limits[i]);
    return pool;
}

void task_pool_free(struct task_pool *pool)
{
    if (!pool)
        return;
    enter(pool);
    pool->stopping = true;
    for (int i = 0; i < TASK_LANES; i++)
        for (int k = 0; k < TASK_DISKS; k++)
            CHECK(pthread_cond_broadcast(&pool->lane[i].queue[k].queued) == 0);
    while (pool->threads > pool->running)
        CHECK(pthread_cond_wait(&pool->left, &pool->lock) == 0);
    pool->orphaned = pool->threads > 0;
    const bool over = !pool->orphaned;
    leave(pool);
    if (over)
        destroy_pool(pool);
}

static struct task_queue *queue_of(struct lane *lane, uint64_t disk)
{
    unsigned i = 0;
    while (i < lane->disks && lane->queue[i].disk != disk)
        i++;
    if (i == TASK_DISKS)
        return &lane->queue[disk % TASK_DISKS];
    if (i == lane->disks)
        lane->queue[lane->disks++].disk = disk;
    return &lane->queue[i];
}

bool task_submit(struct task_pool *pool, enum task_lane lane, uint64_t disk, struct task *task)
{
    enter(pool);
    struct task_queue *queue = queue_of(&pool->lane[lane], disk);
    const bool taken = queue->count < queue->limits.queue_max && has_thread(queue);
    if (taken) {
        task->state = TASK_QUEUED;
        task->queue = queue;
        append(&queue->tasks, task);
        queue->count++;
        CHECK(pthread_cond_signal(&queue->queued) == 0);
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
        unlink_task(&task->queue->tasks, task);
        task->queue->count--;
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
