/* SPDX-License-Identifier: MIT
 *
 * The shared memory that a running server counts in, and that `weir stats` reads:
 * one segment for each instance, in /dev/shm, named after the user and the master.
 * It outlives workers, reloads and, until the next server starts, the server itself.
 *
 * Where things are. The header, which describes the rest, stands first. Behind it lies
 * what was taken into use since, in the order of taking: blocks, rows of sites, and
 * runs of histogram buckets. All that is taken has been allocated before, so that
 * a full /dev/shm is told by a return code and no store ever faults. Places are
 * offsets from the segment's beginning; 0 is none.
 *
 * A block has one writer at a time, a thread or a process, which alone stores in
 * it: loads and stores, no locked instruction. It is not the writer's but adds up
 * what all its writers have counted. Nothing is ever subtracted, merged or moved, so
 * totals never go back. A block without a writer waits in a free list.
 *
 * Pairs and gauges are the exception: when a process dies, what it had open is settled
 * (stats_blocks_settle) before another writer gets its blocks.
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
    STATS_VERSION = 3,                       /* of the layout, counters.def apart */
    STATS_SEGMENT_BYTES = 256 * 1024 * 1024, /* room in it; memory is what was taken */
    STATS_SITES_MAX = 64,                    /* told apart; the last place is for all others */
    STATS_SITE_NAME_MAX = 64,
    STATS_GENERATIONS_MAX = 8, /* remembered */
    STATS_MOMENTS = 64,        /* seconds remembered */
    STATS_MOMENT_QUANTILES = 4,
    STATS_TEXT_MAX = 256,

    /* Durations are counted in units of 16 ns, with 64 buckets to each power of two:
     * within 0.8 % from 1 us to 1 h. Longer ones count as the longest. */
    STATS_UNIT_BITS = 4,
    STATS_BITS = 6,
    STATS_RUN_BUCKETS = 1 << STATS_BITS,
    STATS_RUNS = 33
};
#define STATS_UNITS_MOST ((UINT64_C(1) << 38) - 1)

/* What the master says of the server. */
enum stats_state { STATS_STARTING, STATS_SERVING, STATS_STOPPING, STATS_STATES };

typedef _Atomic uint64_t stats_cell;

/* Buckets come in runs, one for each power of two, which are taken when first needed. */
struct stats_durations {
    stats_cell sum_ns;
    _Atomic uint32_t run[STATS_RUNS]; /* places of STATS_RUN_BUCKETS cells */
    uint32_t unused;
};

/* What one writer counts for one site, or for what no site answered. */
struct stats_row {
    stats_cell requests;
    stats_cell by_class[5]; /* 1xx to 5xx */
    stats_cell body_bytes;
    struct stats_durations latency;
};

struct stats_block {
    _Alignas(CACHE_LINE) _Atomic uint32_t next; /* block; never changes once it is reachable */
    _Atomic uint32_t next_free;
    _Atomic int32_t owner;        /* process of its writer; 0: none */
    int64_t settled[STATS_PAIRS]; /* up - down when the owner got it */
    _Alignas(CACHE_LINE) stats_cell counter[STATS_COUNTERS];
    struct stats_durations queue_wait, sending;
    _Atomic uint32_t row[STATS_SITES_MAX]; /* by site */
};

/* What a concurrency model means; src/model/models.def says it for each. */
enum stats_accepts {
    STATS_ACCEPTS_MASTER, /* and passes each connection to a worker */
    STATS_ACCEPTS_ONE,    /* thread of each worker */
    STATS_ACCEPTS_EACH    /* thread of each worker, and serves what it accepts */
};
enum stats_serves {
    STATS_SERVES_LOOP,   /* an event loop serves many connections */
    STATS_SERVES_POOL,   /* a fixed number of threads, behind a queue */
    STATS_SERVES_THREAD, /* each connection has a thread */
    STATS_SERVES_PROCESS /* each connection has a process, and a cache that begins empty */
};

struct stats_generation {
    uint64_t number; /* 1: the first; 0: none here */
    uint64_t configuration;
    uint64_t cache_bytes; /* room in the cache of each worker; 0: there is none */
    int64_t started_s;
    uint32_t workers, threads;
    uint32_t accepts, serves; /* enum stats_accepts, enum stats_serves */
    char model[16];
};

/* How things stood at one second, kept by the master. */
struct stats_moment {
    uint64_t at_ns;                              /* CLOCK_MONOTONIC; 0: none yet */
    uint64_t counter[STATS_NAMED];               /* totals, as in counters.def */
    uint64_t by_class[5];                        /* answers, 1xx to 5xx: totals */
    uint64_t latency_count;                      /* requests measured since the moment before */
    uint64_t latency_ns[STATS_MOMENT_QUANTILES]; /* their p50, p90, p99, p99.9; 0: none */
};

/* The segment in its own words, for readers that do not know counters.def. */
struct stats_entry {
    char name[40];
    char kind[12]; /* counter, gauge */
    char unit[12];
    uint32_t offset; /* in a block */
    uint32_t unused;
    char sentence[160];
};

struct stats_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t layout; /* stats_layout() */
    uint64_t segment_bytes;
    uint32_t block_bytes, entry_count, entry_bytes, row_offset;
    uint32_t unit_bits, bits, runs, sites_max;
    char weir[16]; /* its version */

    _Atomic int32_t master;
    _Atomic uint64_t master_started; /* in ticks since boot, as /proc has it */
    int64_t started_s;
    _Atomic uint64_t heartbeat_ns; /* the master was there, CLOCK_MONOTONIC */
    _Atomic uint32_t state;        /* enum stats_state */

    /* Odd while the master writes what is below, up to the moments. */
    _Atomic uint32_t sequence;
    _Atomic uint32_t site_count;
    uint64_t generation;                                        /* the one that serves */
    struct stats_generation generations[STATS_GENERATIONS_MAX]; /* number n at n % MAX */
    int64_t reloaded_s;                                         /* the last attempt; 0: none */
    uint32_t reload_failed, unused;
    char reload_error[STATS_TEXT_MAX];
    char site[STATS_SITES_MAX][STATS_SITE_NAME_MAX]; /* the first: no site */
    uint64_t moments;                                /* taken */
    struct stats_moment moment[STATS_MOMENTS];       /* number n, from 0, at n % STATS_MOMENTS */

    _Alignas(CACHE_LINE) _Atomic uint64_t taken; /* bytes, from the beginning */
    _Atomic bool full;                           /* there is no more to be had */
    _Atomic uint32_t first_block;
    _Atomic uint64_t free_blocks; /* a place, below a number that each change raises */
    stats_cell unseen;            /* writers that got no block; what they count is lost */

    struct stats_entry entry[STATS_COUNTERS];
};

/* ---- use ---- */

/* Where segments have their names, as shm_open(3) has it on Linux. */
#define STATS_FOLDER "/dev/shm"
enum { STATS_NAME_MAX = 48, STATS_PATH_MAX = STATS_NAME_MAX + sizeof(STATS_FOLDER) };

/* One process's view of it. */
struct stats_segment {
    char *base;                /* NULL: nothing is counted */
    int fd;                    /* -1: memory without a name, which nobody else can read */
    char name[STATS_NAME_MAX]; /* for shm_open; empty: none, or another's */
};

static inline struct stats_header *stats_segment_header(const struct stats_segment *segment)
{
    return (struct stats_header *)(void *)segment->base;
}

/* "/weir-UID-PID". */
void stats_segment_name(char out[STATS_NAME_MAX], uid_t uid, pid_t pid);

/* Makes the segment of this process, the master, after removing what dead servers of this user
 * have left. Where it cannot be named and allocated, *ret_why is why (-errno; else 0) and it is
 * private: counted, and invisible. 0, or -errno when there is no memory at all. */
MUST_USE int stats_segment_create(struct stats_segment *segment, int *ret_why);

/* For a master that replaces another: opens the segment `name` of that one, to go on with what it
 * has counted. Both may count in it. 0 or -errno; -EPROTO: it is none, or has another layout. */
MUST_USE int stats_segment_borrow(struct stats_segment *segment, const char *name);

/* From now on it is this process's, and has its name: the other one is about to go. */
void stats_segment_own(struct stats_segment *segment);

/* Unmaps it, and removes its name if it is this process's. Idempotent. */
void stats_segment_remove(struct stats_segment *segment);

/* Takes `bytes` into use, zeroed, at a place that is a multiple of CACHE_LINE; 0: there is no more.
 * Any thread, any process. */
uint32_t stats_segment_take(const struct stats_segment *segment, size_t bytes);

/* ---- the master's words ---- */

/* It is still there. */
void stats_segment_heartbeat(const struct stats_segment *segment, uint64_t now_ns);

/* The server starts, serves or stops. Of no effect where the segment is another master's. */
void stats_segment_set_state(const struct stats_segment *segment, enum stats_state state);

/* What was told last. Any process. */
enum stats_state stats_segment_state(const struct stats_segment *segment);

/* From now on this process can read it and no more. 0 or -errno. */
MUST_USE int stats_segment_only_read(struct stats_segment *segment);

/* The place of a site by its name, given one if it has none. */
unsigned stats_segment_site(const struct stats_segment *segment, const char *name);

/* Another configuration serves; `generation` is copied, but for its number. */
void stats_segment_generation(const struct stats_segment *segment,
                              const struct stats_generation *generation);

/* How things stand; copied. */
void stats_segment_add_moment(const struct stats_segment *segment,
                              const struct stats_moment *moment);

/* A reload has ended, at `now_s`; `error` is NULL when it took effect. */
void stats_segment_reloaded(const struct stats_segment *segment, const char *error, int64_t now_s);
