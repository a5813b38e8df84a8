/* SPDX-License-Identifier: MIT
 *
 * A compressor with a thread of its own, as a worker of the server has it.
 */
#pragma once

#include "site/compressor.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct {
    pthread_t thread;
    bool runs;
} compressing;

static inline void *compress_in_thread(void *compressor)
{
    while (site_compressor_work(*(struct site_compressor **)compressor))
        continue;
    return NULL;
}

/* `start` of a plan. `context` points to the pointer to the compressor. */
static inline bool start_compressing(void *context)
{
    compressing.runs = pthread_create(&compressing.thread, NULL, compress_in_thread, context) == 0;
    return compressing.runs;
}

/* Stops the thread, and frees the compressor. */
static inline void end_compressing(struct site_compressor *compressor)
{
    site_compressor_stop(compressor);
    if (compressing.runs)
        assert_int_equal(pthread_join(compressing.thread, NULL), 0);
    compressing.runs = false;
    site_compressor_free(compressor);
}
