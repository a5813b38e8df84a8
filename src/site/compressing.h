/* SPDX-License-Identifier: MIT
 *
 * The memory of the compressor, and the steps that all its results have in common. They queue a
 * job, read a form of a file piece by piece within the budget of CPU time, and count the outcome.
 *
 * Private to site/.
 */
#pragma once

#include "site/compress.h"
#include "site/content.h"
#include "site/delta.h"
#include "site/dictionary.h"

#include <pthread.h>
#include <semaphore.h>

struct site_compressing_job {
    struct site_entry *entry;       /* with a reference */
    unsigned codings;               /* of variants and tags, */
    struct site_delta_place *place; /* or the place of a difference, */
    const void *family;             /* or the family that gets the file as a dictionary */
};

enum site_compressing_total {
    SITE_TOTAL_VARIANTS,
    SITE_TOTAL_BEFORE_BYTES,
    SITE_TOTAL_AFTER_BYTES,
    SITE_TOTAL_CPU_NS,
    SITE_TOTAL_PAUSES,
    SITE_TOTAL_USELESS,
    SITE_TOTAL_TAGS,
    SITE_TOTAL_BROKEN,
    SITE_TOTAL_SHARE_REFUSED,
    SITE_TOTAL_DELTAS,
    SITE_TOTAL_UNKNOWN,
    SITE_TOTAL_NOTES,
    SITE_TOTALS
};

struct site_compressor {
    struct site_compressor_plan plan;
    sem_t wake; /* a job or the stop may be there */
    _Atomic bool stopping;
    _Atomic uint64_t total[SITE_TOTALS];
    _Atomic bool crowded; /* a result had no space because of plan.share_bytes */
    _Atomic uint64_t swept_ns;

    pthread_mutex_t lock; /* guards the rest of this group */
    bool started;
    unsigned first, count; /* of `queue` */
    struct site_compressing_job queue[SITE_COMPRESSOR_QUEUE];
    struct site_deltas deltas;

    /* Of the thread alone. */
    struct site_dictionaries dictionaries;
    struct site_compress_budget budget;
    char piece[SITE_CONTENT_PIECE];
};

enum site_compressing_outcome {
    SITE_OUTCOME_MADE,
    SITE_OUTCOME_USELESS, /* too little would be saved */
    SITE_OUTCOME_BROKEN,  /* the file has changed, or there is no memory */
    SITE_OUTCOME_DROPPED  /* site_compressing_may_continue has refused */
};

static inline void site_compressing_add_total(struct site_compressor *c,
                                              enum site_compressing_total total, uint64_t more)
{
    atomic_fetch_add_explicit(&c->total[total], more, memory_order_relaxed);
}

static inline bool site_compressing_is_stopping(struct site_compressor *c)
{
    return atomic_load_explicit(&c->stopping, memory_order_acquire);
}

/* Whether there is space for a result of so many bytes. If the share of all results has none, the
 * next site_compressor_make_space looks for some. Any thread. */
bool site_compressing_request_space(struct site_compressor *c, const struct site_entry *entry,
                                    size_t len);

/* Queues a job, and takes a reference to its entry. Under the lock. False: the queue is full, or
 * the thread cannot start now. */
bool site_compressing_add_job(struct site_compressor *c, struct site_compressing_job job);

/* The functions below are for the thread of the compressor. */

/* Waits until the budget allows the next piece. False: it is not needed any more, because the
 * compressor stops, or because the entry has left the cache. */
bool site_compressing_may_continue(struct site_compressor *c, const struct site_entry *entry);

/* Charges the budget with the CPU time since `began_ns` (os_clock_thread_ns). */
void site_compressing_spend_since(struct site_compressor *c, uint64_t began_ns);

/* Gives form `v` of the entry to `take` in pieces of SITE_CONTENT_PIECE bytes, and a last one that
 * may be shorter, until `take` returns another result than SITE_CODER_MORE. */
enum site_compressing_outcome site_compressing_read(
    struct site_compressor *c, const struct site_entry *entry, int v,
    enum site_coder_result (*take)(void *context, struct span piece, bool last), void *context);

/* Feeds the plain file to an open coder, and closes it. *ret_len: the bytes that it has written. */
enum site_compressing_outcome site_compressing_encode(struct site_compressor *c,
                                                      const struct site_entry *entry,
                                                      struct site_coder *coder, size_t *ret_len);

/* Counts an outcome that gave no result. */
void site_compressing_count(struct site_compressor *c, enum site_compressing_outcome outcome);
