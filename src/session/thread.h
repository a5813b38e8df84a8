/* SPDX-License-Identifier: MIT
 *
 * The state that all sessions of one thread share: output buffers, the current second as text,
 * the access log's buffer and a reader of the cache. The sites, hosts and limits, which all
 * threads of a process share, are here too.
 */
#pragma once

#include "base/check.h"
#include "http/fault.h"
#include "http2/response.h"
#include "log/access.h"
#include "session/fields.h"
#include "session/session.h"
#include "session/turn.h"
#include "site/listing.h"
#include "site/site.h"
#include "stats/writer.h"
#include "tls/wire.h"

#include <stdatomic.h>

struct rules;
struct session_ready_set;

/* One virtual host. */
struct session_site {
    struct site *site;
    const char *name; /* for the log; NULL: it has none */
    /* The site's own fields. With `rules` it has `over_tls` alone. */
    struct session_fields fields;
    const struct rules *rules;       /* for its paths (session/rules.h); NULL: there are none */
    struct session_ready_set *ready; /* answers of `rules`; NULL: none is ready-made */
    /* Its passwords (session/access.h); NULL: no path needs one. With `access_by_path` an array, by
     * the numbers in `rules`, otherwise one for all paths. */
    const struct session_access *access;
    bool access_by_path;
    /* Names in lower case, without port, NULL at the end. "*.name" covers any name below. An empty
     * list covers every host. */
    const char *const *hosts;
    bool markdown;       /* its pages may be in Markdown, too (session/markdown.h) */
    unsigned stats_site; /* its place in the statistics; 0: none */
    uint16_t https_port; /* plain requests are redirected to it; 0: they are served */
    bool early_hints;    /* links are sent before the page (session/hints.h) */
};

/* The most bytes of a site's own fields, or of those of its rules. */
enum { SESSION_FIELDS_MAX = 4096 };

struct peer_networks;
struct session_forwarding;
struct session_access;
struct session_guard;
struct site_fetch_ticket;
struct site_fetches;
struct task_home;
struct task_pool;
struct tls_server;

/* The most listings that threads of one connection render at the same time. Beside one that takes
 * long, others may begin. */
enum { SESSION_RENDERINGS = 16 };

/* The server fills it before any thread starts. Then only the atomics change. */
struct session_shared {
    const struct session_site *sites;
    size_t site_count;
    struct session_hosts *hosts; /* index of `sites` (session/hosts.h) */
    struct site_cache *cache;
    struct site_compressor *compressor; /* NULL: nothing is compressed */
    struct log_access_sink *log;
    const struct stats_segment *stats;   /* NULL: nothing is counted */
    struct session_totals *totals;       /* of the process (session/tally.h); NULL without stats */
    struct span server_field;            /* "Server: weir\r\n", or empty */
    uint64_t header_timeout_ns;          /* from the first byte of a head to its last */
    uint64_t body_timeout_ns;            /* for a whole request body */
    uint64_t idle_timeout_ns;            /* between requests */
    uint64_t drain_idle_ns;              /* between requests, while `draining` */
    uint64_t send_timeout_ns;            /* for each send_step_bytes of progress */
    uint32_t send_step_bytes;            /* at least SESSION_SEND_STEP */
    uint32_t body_rate_bytes;            /* least bytes per second of a request body; 0: no limit */
    uint32_t connection_requests;        /* the last one is answered with a close; 0: no limit */
    uint64_t slow_ns;                    /* an answer that takes so long is slow; 0: none is */
    uint64_t connection_time_ns;         /* then no further request is served; 0: no limit */
    const struct session_limits *limits; /* of each address; NULL: none */
    const struct peer_networks
        *proxies; /* their connections begin with a PROXY header; NULL: none */
    const struct session_forwarding *forwarding; /* NULL: no request has another client */
    struct session_guard *guard;                 /* NULL: no site needs a password */
    struct task_pool *tasks;                     /* NULL: no answer is ever pending */
    struct site_fetches *fetches;                /* NULL: all lookups may wait */
    struct tls_server *tls; /* NULL: no listener speaks TLS; with the same sites */
    bool h2c;               /* plain connections may begin with HTTP/2's preface */
    uint32_t http2_streams; /* most open streams of a connection; 0: HTTP2_STREAMS_MAX */
    struct site_listing_limit listings;
    _Atomic bool draining;                         /* answers say `Connection: close` */
    pthread_mutex_t rendering[SESSION_RENDERINGS]; /* by site and path; zeroed: unlocked */
};

/* One feed decrypts at most its own bytes, and the record that they complete. */
enum { SESSION_TLS_PLAIN_BYTES = SESSION_READ_MAX + TLS_RECORD_BYTES };

/* The most bytes of a file that one call of read takes for HTTP/2 over TLS. */
enum { SESSION_FILE_BYTES = 64 * 1024 };

/* The fewest bytes that count as progress. */
enum { SESSION_SEND_STEP = 4096 };

/* Output buffers that no session uses, the newest first. Zeroed: none. */
struct session_spares {
    struct session_buffer *buffers;
    unsigned count;
};

struct session_http2_streams;
struct session_pages_known;
struct session_trace;

struct session_thread {
    struct session_shared *shared;
    struct task_home *home;      /* answers may be pending, and this is woken when they are ready
                               (session_thread_use_home). NULL: the thread waits for them in its
                               calls */
    enum site_patience patience; /* of lookups; private to session/ */
    struct site_fetch_ticket *fetched; /* until the end of the turn; private to session/ */
    struct site_cache_reader *reader;
    struct log_access *log; /* `own_log`, or that of another session_thread */
    struct log_access own_log;
    struct stats_writer stats;
    uint64_t now_ns;
    uint64_t slow_ns; /* of `shared`; a time that never comes if no answer is slow */
    int64_t wall_s;
    struct session_turn turn;
    char ok_prefix[64]; /* the status line of a 200, and Date */
    size_t ok_prefix_len;
    char block_prefix[HTTP2_RESPONSE_STATUS_MAX + HTTP2_RESPONSE_DATE_BYTES]; /* in HPACK */
    size_t block_prefix_len;
    struct span date_field; /* "Date: ...\r\n", the end of ok_prefix */
    struct session_spares spares;
    struct tls_chunks tls_chunks; /* unused memory for encrypted output */
    char *tls_plain; /* SESSION_TLS_PLAIN_BYTES for decrypted input; NULL until it is needed */
    struct session_http2_streams *http2_streams; /* unused; NULL: none (session/http2.h) */
    char *http2_scratch; /* for header blocks of HTTP/2; NULL until it is needed */
    char *file_bytes;    /* SESSION_FILE_BYTES of a file that are sealed in the same call */
    size_t file_used;    /* of them: lent, or read in vain */
    struct session_pages_known *pages_known; /* NULL until it is needed (session/pages.h) */
    struct session_trace *trace;             /* NULL: requests are not traced (session/trace.h) */
    _Atomic uint32_t *counted; /* in a process with one connection, the packed address that is
                                    counted, for its parent; NULL otherwise */
    enum http_fault fault;     /* counted last, and not noted yet (session/recent.h) */
    uint64_t id;               /* of the last request */
    uint64_t id_key;           /* secret; ids of other threads are derived with it */
    uint64_t log_due_ns;       /* when the log's buffer is written; 0: it is empty */
    pthread_mutex_t log_lock;
};

/* Lets answers of this thread be pending. NULL: they are not. */
void session_thread_use_home(struct session_thread *thread, struct task_home *home);

/* Prepares the thread with number `index`, from 0. Returns 0 or -ENOMEM. */
MUST_USE int session_thread_start(struct session_thread *thread, struct session_shared *shared,
                                  unsigned index);
void session_thread_stop(struct session_thread *thread);

/* For a process that forks, before its first fork: allocates what the first request would, so that
 * no child has to. */
void session_thread_prepare(struct session_thread *thread);

/* Before each fork: gives the child ids of its own. */
void session_thread_divide(struct session_thread *thread);

/* In the child: makes the session_thread that was copied with the process the child's own. */
void session_thread_inherit(struct session_thread *thread);

/* Like session_thread_start, called by the owner's thread, but log lines go into the buffer of
 * `owner`, which writes them. This is for many threads that wait long. Before the first of them
 * starts, the owner's thread calls session_thread_share_log. The owner ticks while they have
 * sessions, and stops after them. The thread begins at rest. */
void session_thread_start_beside(struct session_thread *thread, struct session_thread *owner,
                                 unsigned index);
void session_thread_share_log(struct session_thread *owner);

/* The only session of a thread has ended. Frees what the thread keeps for the next one, but for one
 * output buffer. */
void session_thread_shrink(struct session_thread *thread);

/* Takes the buffer of a thread that has shrunk, and frees it if there are many. */
void session_spares_give(struct session_spares *spares, struct session_thread *thread);

/* Moves a buffer to a thread, if there is one. */
void session_spares_take(struct session_spares *spares, struct session_thread *thread);

/* Frees buffers until at most `most` are left. */
void session_spares_trim(struct session_spares *spares, unsigned most);

/* Call it once for each wake-up, before any session call. Sets the time, ends the turn, releases
 * what it found in the cache, and writes the log when it is due. */
void session_thread_tick(struct session_thread *thread, uint64_t now_ns, int64_t wall_s);

/* Whether the durations of answers are used: the clock is read after each send. */
static inline bool session_thread_is_timed(const struct session_thread *thread)
{
    return __builtin_expect(stats_writer_visible(&thread->stats), 1) || thread->log->layout != NULL;
}

/* The latest time of the next tick, so that the log is written. UINT64_MAX: no limit. */
uint64_t session_thread_due_ns(struct session_thread *thread);

/* The id of a new request. No two requests have the same id, across threads, processes and
 * starts of the server, because 2^64 is large. A loop's ids begin at a random number. A
 * connection with a thread or process of its own begins at a hash, with a secret key, of its
 * loop's next id. That takes no system call. The step is odd, so that the ids of a thread do not
 * repeat. It is large, so that ids of neighbours differ from the first digit on. Ids identify
 * lines in a log. They are no secrets: other ids can be computed from one. */
#define SESSION_ID_STEP UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t session_thread_next_id(struct session_thread *thread)
{
    return thread->id += SESSION_ID_STEP;
}

/* A session of a thread with this home whose answer has become ready since the last call. NULL:
 * none. The model calls it after the home's wake-up until it returns NULL, and then
 * session_resume. If other threads serve sessions of this home, the session may be closed already,
 * or belong to another connection. Its owner may call session_resume all the same. */
struct session *session_thread_next_ready(const struct session_thread *thread);

/* Call them before and after waiting, where other threads share the cache. A thread at rest does
 * not delay the reclamation of entries. */
void session_thread_rest(struct session_thread *thread);
void session_thread_resume(struct session_thread *thread);
