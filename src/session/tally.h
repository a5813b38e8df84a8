/* SPDX-License-Identifier: MIT
 *
 * The sessions' part of the statistics. An answer counts once, when its line goes to the access
 * log. Its duration counts when the kernel has taken its last byte.
 *
 * session_totals is public. The rest is private to session/.
 */
#pragma once

#include "http/fault.h"
#include "http2/fault.h"
#include "session/buffer.h"
#include "session/thread.h"
#include "session/trace.h"
#include "site/cache.h"
#include "stats/writer.h"

#include <pthread.h>

struct session_exchange;
struct session_shared;
struct session_site;

struct session_totals {
    pthread_mutex_t lock; /* guards the rest */
    struct stats_writer stats;
    uint64_t evictions, dropped; /* values already published */
    uint64_t misses[SITE_CACHE_SIZES];
};

/* Sets shared->totals if shared->stats is set. shared->cache and shared->log must be set before. */
void session_tally_init(struct session_totals *totals, struct session_shared *shared);
void session_tally_done(struct session_totals *totals);

/* Publishes what the cache and the log have counted since the last call. Any thread. */
void session_tally_publish(struct session_shared *shared);

/* The same, if an entry has left the cache and no other has come in its place: its file is gone, or
 * it made space for a variant. The gauges of the cache then follow at once. */
void session_tally_follow_cache(struct session_shared *shared);

/* Counts one event of the process. Any thread. */
void session_tally_count(const struct session_shared *shared, enum stats_counter counter);

/* In a forked process: the totals use the thread's block too. */
void session_tally_inherit(struct session_thread *thread);

/* The answer of HTTP/2 to `x` begins. */
void session_tally_begun(struct session_exchange *x);

/* The last byte of an answer is in the output. The request began to arrive at `began_ns`. */
void session_tally_ends(struct session_buffer *out, uint64_t began_ns, unsigned site);

/* The whole answer of HTTP/1.1 to `x` is in the output. `site` is its place in the statistics. */
void session_tally_staged(struct session_exchange *x, unsigned site);

/* An answer is logged, with its status and the bytes of its body. */
void session_tally_answer(const struct stats_writer *stats, unsigned site, unsigned status,
                          uint64_t body_bytes);

/* A request begins to wait for the disk. */
static inline void session_tally_wait_begins(const struct session_thread *thread)
{
    stats_writer_add(&thread->stats, STATS_fetch_waits_begun, 1);
}

/* It waits no longer. Returns how long it has waited, in nanoseconds. */
uint64_t session_tally_wait_ends(const struct session_thread *thread, uint64_t since_ns);

/* A request was refused for `fault`. HTTP_FAULT_NONE: it was not. A trace notes the fault too. */
static inline void session_tally_fault(struct session_thread *thread, enum http_fault fault)
{
    if (__builtin_expect(fault == HTTP_FAULT_NONE, 1))
        return;
    stats_writer_add(&thread->stats, STATS_FAULT_FIRST + (unsigned)fault - 1, 1);
    thread->fault = fault;
    if (thread->trace)
        thread->trace->fault = fault;
}

/* Counts when a request is under way on the connection. */
void session_tally_set_active(struct session *s, bool active);

/* A TLS handshake is complete, and took `took_ns`. */
void session_tally_handshake(const struct session *s, uint64_t took_ns);

/* It has failed. `error` is OpenSSL's code; 0: the connection ended first. */
void session_tally_handshake_failed(const struct session *s, unsigned long error);

/* The server has ended an HTTP/2 connection because of `fault`. */
void session_tally_http2_failed(const struct stats_writer *stats, enum http2_fault fault);

/* The server has reset a stream because of `fault`. */
void session_tally_http2_reset(const struct stats_writer *stats, enum http2_fault fault);

/* All answers in `out` have been sent. */
void session_tally_sent(const struct stats_writer *stats, struct session_buffer *out,
                        uint64_t now_ns);

/* The answers in `out` will never be sent completely. */
void session_tally_cut(const struct stats_writer *stats, const struct session_buffer *out);
