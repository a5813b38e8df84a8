/* SPDX-License-Identifier: MIT
 *
 * A bounded queue of descriptors between the threads that find work and those
 * that do it: a ring under a mutex, with one counting semaphore for its free
 * slots and one for its filled ones. Who brings work never waits: a queue that
 * is full says so. Who does it waits for the second semaphore, on which a post
 * costs a system call only when somebody waits.
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

/* Room for `slots` descriptors (1 .. INT_MAX). 0 or -ENOMEM. */
MUST_USE int model_queue_init(struct model_queue *queue, unsigned slots);

/* Nobody uses it any more. Descriptors that are in it are not closed. */
void model_queue_done(struct model_queue *queue);

/* Puts `count` descriptors in, in their order; how many went in: the rest found
 * the queue full, or closed. Any thread. */
MUST_USE unsigned model_queue_push(struct model_queue *queue, const int *fds, unsigned count);

/* Takes the oldest descriptor, or tells that there is none. Any thread. */
int model_queue_try_pop(struct model_queue *queue);

/* The same, but waits for one, until `until_ns` (monotonic; UINT64_MAX: for
 * good) at the longest. Any thread. */
int model_queue_pop(struct model_queue *queue, uint64_t until_ns);

/* Takes nothing more. What is in it can still be taken; after that, and where
 * somebody waits, the answer is MODEL_QUEUE_CLOSED. Any thread. */
void model_queue_close(struct model_queue *queue);
