/* SPDX-License-Identifier: MIT
 *
 * What the sessions of one thread share: output buffers, the present second as
 * text, the access log's buffer, a reader of the cache. And what all threads of
 * a process share: sites, hosts, limits.
 */
#pragma once

#include "base/check.h"
#include "log/access.h"
#include "session/session.h"
#include "site/site.h"
#include "stats/writer.h"

#include <stdatomic.h>

/* One virtual host's answers. */
struct session_site {
    struct site *site;
    struct span fields;       /* extra response field lines, each ended by CRLF; at most
                                 SESSION_FIELDS_MAX bytes */
    const char *const *hosts; /* names in lower case, without port, NULL at the end; "*.name"
                                 stands for any name below; an empty list answers every host */
    unsigned stats_site;      /* its place in the statistics; 0: it has none */
};

enum { SESSION_FIELDS_MAX = 4096 };

/* Made by the server before any thread starts; immutable but for the atomics. */
struct session_shared {
    const struct session_site *sites;
    size_t site_count;
    struct session_hosts *hosts; /* made from `sites` (session/hosts.h) */
    struct site_cache *cache;
    struct log_access_sink *log;
    const struct stats_segment *stats; /* NULL: nothing is counted */
    struct session_totals *totals;     /* of the process (session/tally.h); NULL without stats */
    struct span server_field;          /* "Server: weir\r\n", or empty */
    uint64_t header_timeout_ns;        /* from the first byte of a head to its last */
    uint64_t body_timeout_ns;          /* for a request body, whole */
    uint64_t idle_timeout_ns;          /* between requests */
    uint64_t drain_idle_ns;            /* the same, once `draining` */
    uint64_t send_timeout_ns;          /* for each SESSION_SEND_STEP bytes of progress */
    _Atomic bool draining;             /* answers say `Connection: close` */
};

/* Progress that a reader has to make within send_timeout_ns, in bytes. */
enum { SESSION_SEND_STEP = 4096 };

struct session_trace;

struct session_thread {
    struct session_shared *shared;
    struct site_cache_reader *reader;
    struct log_access *log; /* `own_log`, or that of another thread */
    struct log_access own_log;
    struct stats_writer stats;
    uint64_t now_ns;
    int64_t wall_s;
    char ok_prefix[128]; /* status line 200 and Date, ready */
    size_t ok_prefix_len;
    struct span date_field;       /* "Date: ...\r\n", the end of ok_prefix */
    struct session_buffer *spare; /* output buffers not in use */
    unsigned spare_count;
    struct session_trace *trace; /* NULL: nobody asks why (session/trace.h) */
    uint64_t id;                 /* of the last request */
    uint64_t id_key;             /* secret: from where to where ids branch off */
    uint64_t log_due_ns;         /* when the log's buffer is written; 0: it was empty */
    pthread_mutex_t log_lock;
};

/* Binds thread number `index` (0 ..) to what is shared. 0 or -ENOMEM. */
MUST_USE int session_thread_start(struct session_thread *thread, struct session_shared *shared,
                                  unsigned index);
void session_thread_stop(struct session_thread *thread);

/* For a process that forks, and its children: gets what the first request would get, so that no
 * child has to; before each fork, lets the child be another one than its siblings; and makes the
 * thread that was copied with the process the child's own. */
void session_thread_prepare(struct session_thread *thread);
void session_thread_divide(struct session_thread *thread);
void session_thread_inherit(struct session_thread *thread);

/* Like session_thread_start, by the owner's thread, but its lines go into the buffer of `owner`,
 * which writes them when they are due: for threads that wait long, and many. Before the first of
 * them starts, the owner's thread calls session_thread_share_log; it ticks while they have
 * sessions, and stops after them. The thread begins at rest. */
void session_thread_start_beside(struct session_thread *thread, struct session_thread *owner,
                                 unsigned index);
void session_thread_share_log(struct session_thread *owner);

/* Once for each wake-up, before any session call: takes the time, lets go of
 * what the last turn found in the cache, and writes the log when it is due. */
void session_thread_tick(struct session_thread *thread, uint64_t now_ns, int64_t wall_s);

/* When the next tick has to come at the latest, for the log's sake; UINT64_MAX: no matter. */
uint64_t session_thread_due_ns(struct session_thread *thread);

/* The id of a new request. No two have the same, of whatever thread, process or start of the
 * server: a thread begins anywhere, and so far from the others (2^64 is large) that the steps of
 * none come to where another one's are. Each loop begins at random; where a connection has a
 * thread or a process of its own, that begins at a hash, with a secret key, of the next step of
 * its loop, which takes no system call. The step is odd, so that a thread's ids do not repeat, and
 * large, so that those of neighbours look different from the first digit on. Ids are for finding a
 * line in a log, and no secrets: from one, others can be told. */
#define SESSION_ID_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t session_thread_next_id(struct session_thread *thread)
{
    return thread->id += SESSION_ID_STEP;
}

/* Before waiting, and after, where other threads share the cache. */
void session_thread_rest(struct session_thread *thread);
void session_thread_resume(struct session_thread *thread);
