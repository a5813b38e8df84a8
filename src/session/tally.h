/* SPDX-License-Identifier: MIT
 *
 * What sessions tell the statistics. Each answer counts once, in the moment that its
 * line goes to the access log; its duration when its last byte is with the kernel.
 *
 * session_totals is public; the rest is private to session/.
 */
#pragma once

#include "http/fault.h"
#include "session/buffer.h"
#include "session/thread.h"
#include "session/trace.h"
#include "site/cache.h"
#include "stats/writer.h"

#include <pthread.h>

struct session_exchange;
struct session_shared;
struct session_site;

/* ---- of the process: cache and log count for themselves ---- */

struct session_totals {
    pthread_mutex_t lock; /* guards the rest */
    struct stats_writer stats;
    uint64_t evictions, dropped; /* what has been told */
    uint64_t misses[SITE_CACHE_SIZES];
};

/* Sets shared->totals, when shared->stats is set; the cache and the log are. */
void session_totals_init(struct session_totals *totals, struct session_shared *shared);
void session_totals_done(struct session_totals *totals);

/* Tells what the cache and the log have counted since it was last told. Any thread. */
void session_totals_publish(struct session_shared *shared);

/* In a process that was forked off: the thread's block is for the totals too. */
void session_totals_inherit(struct session_thread *thread);

/* ---- of answers ---- */

/* An answer to `x` is in the output; of a site, by its place in the statistics. */
void session_tally_staged(struct session_exchange *x, unsigned site);

/* It is logged, with its status and so many bytes of body. */
void session_tally_answer(const struct stats_writer *stats, unsigned site, unsigned status,
                          uint64_t body_bytes);

/* A request was refused as such; HTTP_FAULT_NONE: it was not. Who traces it is told. */
static inline void session_tally_fault(const struct session_thread *thread, enum http_fault fault)
{
    if (__builtin_expect(fault == HTTP_FAULT_NONE, 1))
        return;
    stats_add(&thread->stats, STATS_FAULT_FIRST + (unsigned)fault - 1, 1);
    if (thread->trace)
        thread->trace->fault = fault;
}

/* All answers in `out` have been sent. */
void session_tally_sent(const struct stats_writer *stats, const struct session_buffer *out,
                        uint64_t now_ns);

/* They never will be. */
void session_tally_cut(const struct stats_writer *stats, const struct session_buffer *out);
