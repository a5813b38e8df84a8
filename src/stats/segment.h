/* SPDX-License-Identifier: MIT
 *
 * The shared memory that a running server counts in, and that `weir stats` reads. Each instance
 * has one segment, a folder in /dev/shm that is named after the user and the master. It outlives
 * workers and reloads, and the server itself until this user starts another.
 *
 *     head        the header: what the numbers mean, what the master reports, which arenas exist
 *     0, 1, ...   the arenas: the memory that one process counts in
 *
 * Only a master can write the head. A worker can write its own arena, and maps the head to read
 * it. So a worker that was taken over can falsify its own counts, and nothing else. No process
 * believes an arena that another process writes: readers copy and check it (stats/copy.h).
 *
 * An arena begins with its own header. Behind it lies all that was taken into use, in the order of
 * taking: blocks, rows of sites, and runs of histogram buckets. Memory is allocated before it is
 * taken into use. A full /dev/shm therefore gives a return code, and no store ever faults. A place
 * is an offset from the beginning of the arena; 0 means none.
 *
 * The header of an arena also has the last answers that failed, were slow or were cut.
 *
 * A block has one writer at a time, a thread or a process, and only the writer stores in it.
 * Adding is a load and a store, without a locked instruction. A block keeps the totals of all
 * its writers, one after the other. Nothing is ever subtracted, merged or moved, so totals never
 * fall. A block without a writer waits in the free list of its arena. The successor of a worker
 * counts in the arena that the worker left.
 *
 * Pairs and gauges are the exception. When a worker dies, the master ends in its own arena what the
 * worker had open (stats_arena_settle). A gauge counts while its arena has a process.
 */
#pragma once

#include "base/check.h"
#include "stats/counters.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- layout ---- */

#define STATS_MAGIC "weirstat"

enum {
    STATS_VERSION = 9,                     /* of the layout, without counters.def */
    STATS_ARENA_BYTES = 256 * 1024 * 1024, /* address space; memory only as it is taken */
    STATS_ARENAS_MAX = 2048,
    STATS_SITES_MAX = 64, /* the last place is for all further sites */
    STATS_SITE_NAME_MAX = 64,
    STATS_GENERATIONS_MAX = 8, /* remembered */
    STATS_MOMENTS = 64,        /* remembered, one a second */
    STATS_MOMENT_QUANTILES = 4,
    STATS_TEXT_MAX = 256,
    STATS_CERTIFICATES_MAX = 64, /* remembered: those that end first */
    STATS_CERTIFICATE_NAME_MAX = 64,
    STATS_URLS_MAX = 384,
    STATS_RECENT_MAX = 16,       /* remembered of each kind and in each arena */
    STATS_ANSWER_TEXT_MAX = 200, /* bytes */

    /* Durations are counted in units of 16 ns, with 64 buckets for each power of two. That is
     * within 0.8 % from 1 us to 1 h. A longer duration counts as the longest. */
    STATS_UNIT_BITS = 4,
    STATS_BITS = 6,
    STATS_RUN_BUCKETS = 1 << STATS_BITS,
    STATS_RUNS = 33
};
#define STATS_UNITS_MOST ((UINT64_C(1) << 38) - 1)

/* The state of the server, set by the master. */
enum stats_state { STATS_STARTING, STATS_SERVING, STATS_STOPPING, STATS_STATES };

typedef _Atomic uint64_t stats_cell;

/* A run holds the buckets of one power of two. It is taken when it is first needed. */
struct stats_durations {
    stats_cell sum_ns;
    _Atomic uint32_t run[STATS_RUNS]; /* places of STATS_RUN_BUCKETS cells */
    uint32_t unused;
};

/* The part of a block for one site, or for answers that belong to no site. */
struct stats_row {
    stats_cell requests;
    stats_cell by_class[5]; /* 1xx to 5xx */
    stats_cell body_bytes;
    struct stats_durations latency;
};

struct stats_block {
    _Alignas(CACHE_LINE) _Atomic uint32_t next; /* block; constant once it is reachable */
    _Atomic uint32_t next_free;
    _Atomic int32_t owner;        /* process of its writer; 0: none */
    int64_t settled[STATS_PAIRS]; /* up - down when the owner got it */
    _Alignas(CACHE_LINE) stats_cell counter[STATS_COUNTERS];
    struct stats_durations queue_wait, disk_wait, handshake, sending;
    _Atomic uint32_t row[STATS_SITES_MAX]; /* by site */
};

/* The answers that an operator may want to see. Each kind has a ring of its own, so that many of
 * one kind do not displace another. An answer has the first kind that applies. */
enum stats_recent_kind {
    STATS_RECENT_5XX,
    STATS_RECENT_4XX,
    STATS_RECENT_CUT,  /* the connection ended before the answer did */
    STATS_RECENT_SLOW, /* it took `slow_ns` of its generation or longer */
    STATS_RECENT_KINDS
};

/* One of these answers. */
struct stats_answer {
    uint64_t id;
    uint64_t at_ns; /* when it was ready, CLOCK_MONOTONIC */
    uint64_t duration_ns;
    uint64_t body_bytes;
    uint64_t waited_ns; /* of the duration: for the disk, while the loop served others */
    uint16_t status;
    uint16_t site;
    uint16_t fault;                   /* the place in stats_faults plus 1; 0: none */
    uint16_t text_len;                /* of `text` */
    char text[STATS_ANSWER_TEXT_MAX]; /* method and target, without the query; any bytes */
};

/* A place in a ring. Threads and processes may write it at the same time. Only a place whose first
 * and last numbers are equal was read whole: `begun` is stored first, and `whole` last. A reader
 * copies upwards, so it reads `whole` first. */
struct stats_recent {
    stats_cell whole; /* the number of the answer, from 1; 0: none */
    stats_cell word[sizeof(struct stats_answer) / sizeof(uint64_t)];
    stats_cell begun;
};

struct stats_recent_ring {
    _Alignas(CACHE_LINE) stats_cell next;        /* answers so far */
    struct stats_recent place[STATS_RECENT_MAX]; /* number n, from 0, at n % STATS_RECENT_MAX */
};

/* The beginning of an arena. Zeroed: nothing is taken. */
struct stats_arena_header {
    _Alignas(CACHE_LINE) _Atomic uint64_t taken; /* bytes behind this header */
    _Atomic bool full;                           /* memory ran out: nothing more can be taken */
    _Atomic uint32_t first_block;
    _Atomic uint64_t free_blocks; /* a place in the low half; each change raises the high half */
    stats_cell unseen;            /* writers that got no block, so that their counts are lost */
    struct stats_recent_ring recent[STATS_RECENT_KINDS]; /* of all writers (stats/recent.h) */
};

/* The master's record of an arena. Only masters write it. */
struct stats_arena_record {
    _Atomic int32_t owner;        /* the process that counts in it; 0: none */
    uint32_t of_masters;          /* 1: no worker has ever written it */
    int64_t settled[STATS_PAIRS]; /* what earlier processes left open, which is ended already */
};

/* The meaning of a concurrency model; src/model/models.def has it for each model. */
enum stats_accepts {
    STATS_ACCEPTS_MASTER, /* the master, which passes each connection to a worker */
    STATS_ACCEPTS_ONE,    /* one thread of each worker */
    STATS_ACCEPTS_EACH    /* each thread of a worker, which serves what it accepts */
};
enum stats_serves {
    STATS_SERVES_LOOP,   /* an event loop serves many connections */
    STATS_SERVES_POOL,   /* a fixed number of threads, behind a queue */
    STATS_SERVES_THREAD, /* each connection has a thread */
    STATS_SERVES_PROCESS /* each connection has a process, and a cache that begins empty */
};

struct stats_generation {
    uint64_t number; /* from 1; 0: this place is empty */
    uint64_t configuration;
    uint64_t slow_ns;     /* an answer that takes so long is slow; 0: none is */
    uint64_t cache_bytes; /* limit of the cache of each worker; 0: no cache */
    int64_t started_s;
    uint32_t workers, threads;
    uint32_t accepts, serves; /* enum stats_accepts, enum stats_serves */
    char model[16];
    char sandbox[128]; /* of the workers, in words */
    /* The addresses of the sites, and of the statistics page, one a line. Those that do not fit are
     * left out. */
    char urls[STATS_URLS_MAX], page_urls[STATS_URLS_MAX];
};

/* A certificate that the serving configuration uses. */
struct stats_certificate {
    int64_t ends_s;                        /* since 1970 */
    char name[STATS_CERTIFICATE_NAME_MAX]; /* the first one that it covers */
    char key[8];                           /* the kind of its key, such as ECDSA */
};

/* The totals at one second, kept by the master. */
struct stats_moment {
    uint64_t at_ns;                              /* CLOCK_MONOTONIC; 0: none yet */
    uint64_t counter[STATS_NAMED];               /* totals, as in counters.def */
    uint64_t by_class[5];                        /* answers, 1xx to 5xx: totals */
    uint64_t latency_count;                      /* requests measured since the moment before */
    uint64_t latency_ns[STATS_MOMENT_QUANTILES]; /* their p50, p90, p99, p99.9; 0: none */
};

/* The description of a counter, for readers that do not know counters.def. */
struct stats_entry {
    char name[40];
    char kind[12]; /* counter, gauge */
    char unit[16];
    uint32_t offset; /* in a block */
    char sentence[160];
};

struct stats_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t layout;      /* stats_counters_layout() */
    uint64_t arena_bytes; /* at most */
    uint32_t block_bytes, entry_count, entry_bytes, row_offset;
    uint32_t unit_bits, bits, runs, sites_max;
    char weir[16]; /* its version */

    _Atomic int32_t master;
    _Atomic uint64_t master_started; /* in ticks since boot, as in /proc */
    int64_t started_s;
    _Atomic uint64_t heartbeat_ns; /* the last heartbeat, CLOCK_MONOTONIC */
    _Atomic uint32_t state;        /* enum stats_state */

    /* A seqlock: odd while the master writes the fields below, up to `moment`. */
    _Atomic uint32_t sequence;
    _Atomic uint32_t site_count;
    uint64_t generation;                                        /* the one that serves */
    struct stats_generation generations[STATS_GENERATIONS_MAX]; /* number n at n % MAX */
    int64_t reloaded_s;                                         /* the last attempt; 0: none */
    uint32_t reload_failed, unused;
    char reload_error[STATS_TEXT_MAX];
    char site[STATS_SITES_MAX][STATS_SITE_NAME_MAX]; /* the first: no site */
    uint64_t certificate_count;
    struct stats_certificate certificate[STATS_CERTIFICATES_MAX]; /* the first end comes first */
    uint64_t moments;                                             /* taken so far */
    struct stats_moment moment[STATS_MOMENTS]; /* number n, from 0, at n % STATS_MOMENTS */

    struct stats_entry entry[STATS_COUNTERS];

    stats_cell unseen; /* processes without an arena, so that their counts are lost */
    _Atomic uint32_t arena_count;
    struct stats_arena_record arena[STATS_ARENAS_MAX]; /* memory only for arena_count of them */
};

/* ---- use ---- */

/* The folder of segments: that of shm_open(3) on Linux. */
#define STATS_FOLDER "/dev/shm"
#define STATS_HEAD   "head"
enum {
    STATS_NAME_MAX = 48,
    STATS_PATH_MAX = STATS_NAME_MAX + sizeof(STATS_FOLDER),
    STATS_ARENA_NONE = STATS_ARENAS_MAX
};

/* A segment as one process has it. The files of arenas are known to masters and to the process of
 * the statistics page, by number. */
struct stats_segment {
    struct stats_header *header; /* NULL: nothing is counted. Writable in a master only */
    char *base;                  /* the arena of this process; NULL: none */
    int fd;                      /* its file, in which memory is allocated; -1: none */
    unsigned arena;              /* its number; STATS_ARENA_NONE: none */
    int head_fd;                 /* -1: none */
    int folder_fd;               /* -1: memory without a name, which no other process can open */
    int *arena_fds;              /* arena_fd_count of them; -1: not open */
    unsigned arena_fd_count;
    char name[STATS_NAME_MAX]; /* "/weir-UID-PID"; empty: none */
};

/* "/weir-UID-PID". */
void stats_segment_name(char out[STATS_NAME_MAX], uid_t uid, pid_t pid);

/* Creates the segment of this process, the master, after removing the segments of dead servers of
 * this user. If it cannot be named or allocated, it is memory without a name, and *ret_why is the
 * reason (-errno; else 0). Returns 0, or -errno without any memory. */
MUST_USE int stats_segment_create(struct stats_segment *segment, int *ret_why);

/* For a master that replaces another: opens the segment `name` of the earlier one, and continues
 * its totals. Both may count in it. Returns 0 or -errno; -EPROTO: not a segment, or one of
 * another layout. */
MUST_USE int stats_segment_borrow(struct stats_segment *segment, const char *name);

/* Makes a borrowed segment this process's own, under its own name. An earlier master takes it back
 * in the same way from a successor that has died. */
void stats_segment_own(struct stats_segment *segment);

/* Whether the segment is this process's own. */
bool stats_segment_is_own(const struct stats_segment *segment);

/* Unmaps the segment, and removes its files if this process owns it. Idempotent. */
void stats_segment_remove(struct stats_segment *segment);

/* In a child of the master, before it changes its user: keeps the arena `arena` to count in, and
 * the head to read. Everything else is unmapped and closed. If the arena cannot be used, the
 * process counts in private memory. 0, or -errno, and then it has no segment. */
MUST_USE int stats_segment_enter(struct stats_segment *segment, unsigned arena);

/* In a child of the master: keeps the right to read all of the segment, and no other. 0 or -errno.
 * Arenas that the master creates later are missing until stats_arena_add_file. */
MUST_USE int stats_segment_only_read(struct stats_segment *segment);

/* Unmaps and closes everything, and removes nothing. */
void stats_segment_leave(struct stats_segment *segment);

/* ---- of any process that has the segment ---- */

/* The state that was set last. */
enum stats_state stats_segment_state(const struct stats_segment *segment);

/* The index of a site; 0 for an unknown one. */
unsigned stats_segment_site(const struct stats_segment *segment, const char *name);

/* ---- written by the master ---- */

/* Stores the time of a heartbeat. */
void stats_segment_heartbeat(const struct stats_segment *segment, uint64_t now_ns);

/* Has no effect on a segment of another master. */
void stats_segment_set_state(const struct stats_segment *segment, enum stats_state state);

/* Gives a site an index, if it has none and one is left. */
void stats_segment_add_site(const struct stats_segment *segment, const char *name);

/* Records that another configuration serves. `generation` is copied, with a new number. */
void stats_segment_generation(const struct stats_segment *segment,
                              const struct stats_generation *generation);

/* Replaces the certificates, at most STATS_CERTIFICATES_MAX. */
void stats_segment_certificates(const struct stats_segment *segment,
                                const struct stats_certificate *certificates, size_t count);

/* Copies a moment into the ring. */
void stats_segment_add_moment(const struct stats_segment *segment,
                              const struct stats_moment *moment);

/* Records the end of a reload at `now_s`. `error` is NULL when it took effect. */
void stats_segment_reloaded(const struct stats_segment *segment, const char *error, int64_t now_s);
