/* SPDX-License-Identifier: MIT */
#include "model/queue.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

int model_queue_init(struct model_queue *queue, unsigned slots)
{
    CHECK(slots > 0 && slots <= INT_MAX);
    const size_t size = (slots * sizeof(int) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    *queue = (struct model_queue){ .slots = slots, .ring = aligned_alloc(CACHE_LINE, size) };
    if (!queue->ring)
        return -ENOMEM;
    CHECK(sem_init(&queue->free, 0, slots) == 0 && sem_init(&queue->filled, 0, 0) == 0);
    pthread_mutex_init(&queue->lock, NULL);
    return 0;
}

void model_queue_done(struct model_queue *queue)
{
    sem_destroy(&queue->free);
    sem_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->lock);
    free(queue->ring);
    queue->ring = NULL;
}

static bool take_token(sem_t *semaphore)
{
    int rc;
    do
        rc = sem_trywait(semaphore);
    while (rc < 0 && errno == EINTR);
    return rc == 0;
}

static void post_tokens(sem_t *semaphore, unsigned times)
{
    while (times-- > 0)
        CHECK(sem_post(semaphore) == 0); /* at most `slots` tokens, and one of the close */
}

unsigned model_queue_push(struct model_queue *queue, const int *fds, unsigned count)
{
    unsigned taken = 0;
    while (taken < count && take_token(&queue->free))
        taken++;
    if (taken == 0)
        return 0;
    pthread_mutex_lock(&queue->lock);
    bool closed = queue->closed;
    unsigned at = (queue->first + queue->count) % queue->slots;
    for (unsigned i = 0; i < taken && !closed; i++) {
        queue->ring[at] = fds[i];
        at = at + 1 < queue->slots ? at + 1 : 0;
    }
    queue->count += closed ? 0 : taken;
    CHECK(queue->count <= queue->slots);
    pthread_mutex_unlock(&queue->lock);
    post_tokens(closed ? &queue->free : &queue->filled, taken);
    return closed ? 0 : taken;
}

/* The caller has a token: for a filled slot, or for the close. NULL: each descriptor is due. */
static int take_oldest(struct model_queue *queue, bool (*is_due)(const void *context, int fd),
                       const void *context)
{
    int fd = MODEL_QUEUE_CLOSED;
    pthread_mutex_lock(&queue->lock);
    if (queue->count == 0) {
        CHECK(queue->closed);
    } else if (is_due && !is_due(context, queue->ring[queue->first])) {
        fd = MODEL_QUEUE_EMPTY;
    } else {
        fd = queue->ring[queue->first];
        queue->first = queue->first + 1 < queue->slots ? queue->first + 1 : 0;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->lock);
    post_tokens(fd < 0 ? &queue->filled : &queue->free, 1); /* the first wakes the next consumer */
    return fd;
}

int model_queue_try_pop(struct model_queue *queue)
{
    return model_queue_try_pop_due(queue, NULL, NULL);
}

int model_queue_try_pop_due(struct model_queue *queue, bool (*is_due)(const void *context, int fd),
                            const void *context)
{
    return take_token(&queue->filled) ? take_oldest(queue, is_due, context) : MODEL_QUEUE_EMPTY;
}

int model_queue_pop(struct model_queue *queue, uint64_t until_ns)
{
    struct timespec until = {
        .tv_sec = (time_t)(until_ns / DURATION_SECOND),
        .tv_nsec = (long)(until_ns % DURATION_SECOND),
    };
    int rc;
    do
        rc = until_ns == UINT64_MAX ? sem_wait(&queue->filled)
                                    : sem_clockwait(&queue->filled, CLOCK_MONOTONIC, &until);
    while (rc < 0 && errno == EINTR);
    return rc == 0 ? take_oldest(queue, NULL, NULL) : MODEL_QUEUE_EMPTY;
}

void model_queue_close(struct model_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool first = !queue->closed;
    queue->closed = true;
    pthread_mutex_unlock(&queue->lock);
    if (first)
        post_tokens(&queue->filled, 1);
}
