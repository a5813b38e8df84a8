/* SPDX-License-Identifier: MIT
 *
 * The compressor: a thread of low priority in each worker, which makes compressed variants of files
 * in the cache, and reads large files for their entity tags. A request that would take a variant
 * hands its entry over and is answered with the plain file. No serving thread ever waits for the
 * compressor: the queue is bounded, and its lock is only tried. The result stays at the entry
 * (made.h) until a later request takes it.
 *
 * The thread starts with the first request for a variant (server/compression.h). It holds a
 * reference to the entry that it works on. It never finds or inserts, so it is no reader of the
 * cache (cache.h). It reads the content from the entry, or from the entry's open file. A file that
 * is replaced, truncated or extended meanwhile gives no variant.
 *
 * Priority: nice 19 and not SCHED_IDLE. On a busy machine a SCHED_IDLE thread may not run for many
 * seconds, while it is in the C library or in the kernel with a lock that serving threads need.
 *
 * It does not decide what is compressed (compress.h), and knows no HTTP.
 */
#pragma once

#include "site/site.h"

struct site_compressor;

/* Jobs that wait. With a full queue a request for a variant is refused, and made again later. */
enum { SITE_COMPRESSOR_QUEUE = 256 };

struct site_compressor_plan {
    unsigned cpu_percent; /* of one CPU, on average; at least 1 */
    size_t share_bytes;   /* the most memory of all made variants of this process */
    size_t entry_bytes;   /* the most of an entry with its variants: what the cache takes */
    /* Starts a thread that calls site_compressor_work. A thread with the first request calls it,
     * and again if it returned false. */
    bool (*start)(void *context);
    void *context;
};

/* NULL without memory. */
struct site_compressor *site_compressor_new(struct site_compressor_plan plan);

/* Waits for a job and does it. False: the stop has come. For one thread, which has lowered its
 * priority. */
bool site_compressor_work(struct site_compressor *compressor);

/* Has site_compressor_work return false after the piece under way (site/coder.h), and
 * drops everything that waits. No request follows. It waits for nothing: until the thread has
 * ended, it may use the entry that it works on, and the site of that entry. */
void site_compressor_stop(struct site_compressor *compressor);

/* Frees it after the stop. The thread has ended, or never started. Accepts NULL. */
void site_compressor_free(struct site_compressor *compressor);

/* Requests `codings` (bits 1 << enum site_variant, of entry->missing) for an entry that is valid:
 * found since the last quiesce, or held. Any thread; returns at once. Each coding of an entry is
 * queued once. What is refused is offered again by the next comparison with the disk. */
enum site_compressor_reply {
    SITE_COMPRESSOR_TAKEN,
    SITE_COMPRESSOR_BUSY,        /* another thread has the queue: the next request tries again */
    SITE_COMPRESSOR_QUEUE_FULL,  /* or the thread cannot start */
    SITE_COMPRESSOR_SHARE_IN_USE /* because of share_bytes or entry_bytes */
};
enum site_compressor_reply site_compressor_request(struct site_compressor *compressor,
                                                   struct site_entry *entry, unsigned codings);

/* Of an entry that has offered codings: those that were requested and may still come. A client that
 * would take one of them waits for it, so that no other one is made meanwhile. */
unsigned site_compressor_awaited(const struct site_entry *entry);

/* After a refusal because of share_bytes: has entries with results leave the cache that no request
 * has used for SITE_COMPRESSOR_IDLE_NS, such as those of files that are not there any more. A full
 * cache evicts them, but the share is usually full before. Each call looks at some entries, at most
 * every SITE_COMPRESSOR_SWEEP_NS. site_cache_has_shrunk says whether an entry has left. */
#define SITE_COMPRESSOR_IDLE_NS  UINT64_C(600000000000)
#define SITE_COMPRESSOR_SWEEP_NS UINT64_C(100000000)
void site_compressor_make_space(struct site_compressor *compressor,
                                struct site_cache_reader *reader, uint64_t now_ns);

/* Requests the tags of the open files of an entry, if entry->untagged. As for variants. */
enum site_compressor_reply site_compressor_request_tags(struct site_compressor *compressor,
                                                        struct site_entry *entry);

/* What the thread has done since site_compressor_new. */
struct site_compressor_totals {
    uint64_t variants;      /* made */
    uint64_t before_bytes;  /* of the files of these variants */
    uint64_t after_bytes;   /* of these variants */
    uint64_t cpu_ns;        /* spent, for any result */
    uint64_t pauses;        /* begun because the budget of CPU time was used up */
    uint64_t useless;       /* results that are not enough smaller than their file */
    uint64_t tags;          /* of files that were read for them */
    uint64_t broken;        /* files that changed meanwhile or left the cache, or no memory */
    uint64_t share_refused; /* results without space (SITE_COMPRESSOR_SHARE_IN_USE) */
    uint64_t deltas;        /* differences made (site/delta.h); not among `variants` */
    uint64_t unknown;       /* differences not made, because the dictionary is unknown */
    uint64_t notes;         /* files that were copied as dictionaries */
};
struct site_compressor_totals site_compressor_totals(const struct site_compressor *compressor);
