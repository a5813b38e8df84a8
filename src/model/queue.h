/* SPDX-License-Identifier: MIT
 *
 * A bounded queue of descriptors: a ring under a mutex, with one counting semaphore for its free
 * slots and one for its filled slots. A producer never waits: a full queue takes no more. A
 * consumer waits for the second semaphore, where a post costs a system call only when a thread
 * waits.
 */
#pragma once

#include "base/check.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

enum { MODEL_QUEUE_CLOSED = -1, MODEL_QUEUE_EMPTY = -2 }; /* in place of a descriptor */

struct model_queue {
    sem_t free, filled;
    pthread_mutex_t lock; /* guards what is below */
    unsigned slots;
    unsigned first, count;
    bool closed;
    int *ring;
};

/* Makes a queue of `slots` descriptors (1 .. INT_MAX). 0 or -ENOMEM. */
MUST_USE int model_queue_init(struct model_queue *queue, unsigned slots);

/* Frees the queue, which no thread uses any more. Does not close the descriptors in it. */
void model_queue_done(struct model_queue *queue);

/* Appends `count` descriptors in their order. Returns how many it took: for the rest the queue was
 * full, or closed. Any thread. */
MUST_USE unsigned model_queue_push(struct model_queue *queue, const int *fds, unsigned count);

/* Takes the oldest descriptor; MODEL_QUEUE_EMPTY or MODEL_QUEUE_CLOSED when there is none. Any
 * thread. */
int model_queue_try_pop(struct model_queue *queue);

/* The same, but leaves the oldest descriptor in the queue while `is_due` is false for it. `is_due`
 * is called with the queue locked. */
int model_queue_try_pop_due(struct model_queue *queue, bool (*is_due)(const void *context, int fd),
                            const void *context);

/* As model_queue_try_pop, but waits for a descriptor until `until_ns` (CLOCK_MONOTONIC; UINT64_MAX:
 * without a limit). Any thread. */
int model_queue_pop(struct model_queue *queue, uint64_t until_ns);

/* Closes the queue: it accepts no more descriptors. Those in it can still be taken. When it is
 * empty, consumers get MODEL_QUEUE_CLOSED, also those that wait. Any thread. */
void model_queue_close(struct model_queue *queue);
