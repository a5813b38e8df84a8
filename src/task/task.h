/* SPDX-License-Identifier: MIT
 *
 * Work that takes too long for an event loop: the check of a slow hash, a lookup that waits for the
 * disk, or the listing of a folder. A few threads do it. Each owner of a loop has a `home`: a list
 * of its tasks that are done, and an eventfd that wakes the loop when the list is no longer empty.
 *
 * Each kind of work has a lane, and in a lane each disk has a queue and threads of its own. So a
 * disk that hangs delays no check and no other disk, and a large folder delays no lookup. A queue
 * is bounded, and a full queue is a normal refusal. Threads start with the first tasks, so a
 * process without tasks has none. A task cannot be interrupted. A cancelled task that runs goes to
 * its end, and is not reported.
 *
 * Threads: any thread may make any call. One lock guards the queues and all lists. It is held for
 * some instructions, never during a task.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

struct task_pool;
struct task_queue;

enum task_lane { TASK_COMPUTES, TASK_FETCHES, TASK_LISTINGS, TASK_LANES };

/* The most queues of a lane. Disks beyond it share them. */
enum { TASK_DISKS = 8 };

#define TASK_NO_DISK UINT64_C(0)

enum task_state { TASK_NEW, TASK_QUEUED, TASK_RUNNING, TASK_DONE, TASK_CANCELLED };

/* The tasks of one loop that are done. Zeroed but for `wake_fd` at the start. */
struct task_home {
    int wake_fd; /* an eventfd of the loop, borrowed while the home has tasks */
    struct task_list {
        struct task *first, *last;
    } done;
};

/* Embedded by its owner, which sets the first four members. The others are private. */
struct task {
    void (*run)(struct task *task);  /* in a thread of the pool; sees nothing but the task */
    void (*drop)(struct task *task); /* frees the task, after task_cancel; short, takes no lock */
    struct task_home *home;          /* is woken when the task is done. NULL: no home is. The task
                                        is then dropped when its `run` has returned */
    void *owner;                     /* what task_next_done returns */
    enum task_state state;
    bool listed;              /* in the list of its home */
    struct task_queue *queue; /* where it was submitted */
    struct task *next;
};

/* The most threads of a queue, and the most tasks that wait for one of them. */
struct task_limits {
    unsigned threads_max, queue_max;
};

/* A pool with these lanes. NULL: out of memory. */
struct task_pool *task_pool_new(const struct task_limits limits[TASK_LANES]);

/* Ends the threads that wait, and does not wait for a task that runs: its thread frees the pool.
 * No task is submitted or cancelled afterwards. Accepts NULL. */
void task_pool_free(struct task_pool *pool);

/* Borrows the task until it is done, or until task_cancel. `disk`: the device that the task may
 * wait for. False: the queue is full, or no thread can be started, and nothing has changed. */
MUST_USE bool task_submit(struct task_pool *pool, enum task_lane lane, uint64_t disk,
                          struct task *task);

/* Reports a task that was never submitted as done: its home is woken. A task that is in the list of
 * its home stays there. */
void task_finish(struct task_pool *pool, struct task *task);

/* A task that is done is not reported any more. */
void task_forget(struct task_pool *pool, struct task *task);

/* Takes a task that was submitted, finished or neither, and calls its `drop`: now, or when its
 * `run` has returned. */
void task_cancel(struct task_pool *pool, struct task *task);

/* Whether `run` has returned. Then its results are visible to this thread. */
bool task_is_done(struct task_pool *pool, const struct task *task);

/* The owner of a task of `home` that has become done since the last call; NULL: none. A loop calls
 * it after a wake-up, until it returns NULL. */
void *task_next_done(struct task_pool *pool, struct task_home *home);
