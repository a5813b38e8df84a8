/* SPDX-License-Identifier: MIT
 *
 * Reading a segment, from whatever process may open it: the server is not asked and
 * need not be alive. What is read is a copy, and nothing in it is believed: a
 * segment that is cut short, foreign, of another version or made up is told in one
 * sentence.
 *
 * Each total is as new as its copy, and never less than in an earlier one. Totals of
 * one copy may be apart by what happened while it was made.
 */
#pragma once

#include "stats/segment.h"

enum { STATS_WHY_MAX = 160, STATS_BUCKETS = STATS_RUNS * STATS_RUN_BUCKETS };

/* Of durations, in units of 2^STATS_UNIT_BITS nanoseconds. */
struct stats_counts {
    uint64_t count, sum_ns;
    uint64_t bucket[STATS_BUCKETS];
};

struct stats_site {
    char name[STATS_SITE_NAME_MAX]; /* empty: answers that are of no site */
    uint64_t requests, by_class[5], body_bytes;
    struct stats_counts latency;
};

/* What one thread or process has counted, with those that had its block before. */
struct stats_part {
    pid_t owner;    /* 0: nobody has it now */
    uint32_t block; /* its place, which tells it from others */
    uint64_t requests;
};

struct stats_snapshot {
    char weir[16]; /* the version that serves */
    pid_t master;
    bool running;
    enum stats_state state; /* what the master said last */
    int64_t started_s;
    uint64_t heartbeat_ns, taken_bytes, unseen;
    uint64_t generation; /* the number of the one that serves; 0: none yet */
    struct stats_generation generations[STATS_GENERATIONS_MAX];
    int64_t reloaded_s;
    bool reload_failed;
    char reload_error[STATS_TEXT_MAX];

    uint64_t counter[STATS_COUNTERS];
    uint64_t pair[STATS_PAIRS];
    struct stats_counts histogram[STATS_HISTOGRAMS];
    unsigned site_count;     /* at least 1 */
    struct stats_site *site; /* so many */
    unsigned moment_count;
    struct stats_moment moment[STATS_MOMENTS]; /* the last ones, the oldest first */
    size_t part_count;
    struct stats_part *parts;
};

/* Adds up `len` bytes of a segment, aligned as one. Gives a snapshot for stats_snapshot_free; NULL
 * with a sentence in `why`, about something that has no name in it. */
struct stats_snapshot *stats_snapshot_of(const char *bytes, size_t len, char why[STATS_WHY_MAX]);

/* The same of the segment `name` ("/weir-..."). */
struct stats_snapshot *stats_snapshot_take(const char *name, char why[STATS_WHY_MAX]);

/* The same of a segment that this process has, named or not. */
struct stats_snapshot *stats_snapshot_here(const struct stats_segment *segment,
                                           char why[STATS_WHY_MAX]);

/* Accepts NULL. */
void stats_snapshot_free(struct stats_snapshot *snapshot);

/* The duration below or at which `part` (0 to 1) of all are; 0 when there are none. */
uint64_t stats_counts_quantile_ns(const struct stats_counts *counts, double part);

/* How many are at most so long, to the width of a bucket. */
uint64_t stats_counts_at_most(const struct stats_counts *counts, uint64_t ns);

/* ---- which there are ---- */

struct stats_instance {
    char name[STATS_NAME_MAX];
    pid_t pid;     /* in the name */
    uint64_t file; /* its number, which stays when a successor gives it another name */
};

enum { STATS_INSTANCES_MAX = 256 };

/* The segments in STATS_FOLDER of user `uid`, whatever they hold; of every user where `pid`, if it
 * is not 0, is in the name. Returns how many, at most STATS_INSTANCES_MAX. */
size_t stats_instances_find(uid_t uid, pid_t pid,
                            struct stats_instance instances[STATS_INSTANCES_MAX]);

/* Finds the same segment by the name it has now, of a server that has taken the place of the one it
 * was found by (stats_segment_own). false, and nothing is changed: it has none any more. */
bool stats_instances_follow(struct stats_instance *instance);
