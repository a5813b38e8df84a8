/* SPDX-License-Identifier: MIT
 *
 * Reading a segment, from any process that may open it. The server is not involved and may be
 * dead. A reader makes a copy and trusts nothing in it. A segment that is truncated, foreign,
 * damaged or of another version is refused with one sentence. An arena that is damaged is left out
 * and counted, so that one worker cannot hide the counts of the others.
 *
 * Each total is as new as its copy, and never less than in an earlier copy. Totals of one copy
 * may differ by what happened while it was made.
 */
#pragma once

#include "stats/copy.h"

enum { STATS_BUCKETS = STATS_RUNS * STATS_RUN_BUCKETS };

/* A histogram of durations, in units of 2^STATS_UNIT_BITS nanoseconds. */
struct stats_counts {
    uint64_t count, sum_ns;
    uint64_t bucket[STATS_BUCKETS];
};

struct stats_site {
    char name[STATS_SITE_NAME_MAX]; /* empty: answers that belong to no site */
    uint64_t requests, by_class[5], body_bytes;
    struct stats_counts latency;
};

/* One block: the counts of its writer and of all earlier writers. */
struct stats_part {
    pid_t owner;    /* 0: no writer now */
    uint64_t block; /* identifies it: the arena, and the place there */
    uint64_t requests;
};

struct stats_snapshot {
    char weir[16]; /* the version that serves */
    pid_t master;
    bool running;
    enum stats_state state; /* set last by the master */
    int64_t started_s;
    uint64_t heartbeat_ns, taken_bytes, unseen;
    unsigned damaged;    /* arenas that are left out */
    uint64_t generation; /* the number of the serving generation; 0: none yet */
    struct stats_generation generations[STATS_GENERATIONS_MAX];
    int64_t reloaded_s;
    bool reload_failed;
    char reload_error[STATS_TEXT_MAX];

    unsigned certificate_count;
    struct stats_certificate certificate[STATS_CERTIFICATES_MAX]; /* the first end comes first */

    uint64_t counter[STATS_COUNTERS];
    uint64_t pair[STATS_PAIRS];
    struct stats_counts histogram[STATS_HISTOGRAMS];
    unsigned site_count;     /* at least 1 */
    struct stats_site *site; /* site_count of them */
    unsigned moment_count;
    struct stats_moment moment[STATS_MOMENTS]; /* the last ones, the oldest first */
    size_t part_count;
    struct stats_part *parts;
    unsigned recent_count[STATS_RECENT_KINDS];
    struct stats_answer recent[STATS_RECENT_KINDS][STATS_RECENT_MAX]; /* the newest come first */
};

/* Sums up a copy, in which damaged arenas become empty. Gives a snapshot, which the caller frees
 * with stats_snapshot_free. On failure NULL, and `why` is the rest of a sentence that begins with
 * the name of the segment. */
struct stats_snapshot *stats_snapshot_of(struct stats_copy *copy, char why[STATS_WHY_MAX]);

/* The same for the segment `name` ("/weir-..."). */
struct stats_snapshot *stats_snapshot_take(const char *name, char why[STATS_WHY_MAX]);

/* The same for a segment that this process has, named or not. */
struct stats_snapshot *stats_snapshot_here(const struct stats_segment *segment,
                                           char why[STATS_WHY_MAX]);

/* Accepts NULL. */
void stats_snapshot_free(struct stats_snapshot *snapshot);

/* The duration that `part` (0 to 1) of all durations do not exceed; 0 when there are none. */
uint64_t stats_snapshot_quantile_ns(const struct stats_counts *counts, double part);

/* How many durations are at most `ns`, within the width of a bucket. */
uint64_t stats_snapshot_at_most(const struct stats_counts *counts, uint64_t ns);

/* ---- finding segments ---- */

struct stats_instance {
    char name[STATS_NAME_MAX];
    pid_t pid;     /* of the master, from the name */
    uint64_t file; /* inode number, which stays the same when a successor renames it */
};

enum { STATS_INSTANCES_MAX = 256 };

/* Finds segments by their names in STATS_FOLDER: all of user `uid`, or, with a `pid` other than 0,
 * that of this master of any user. Any user can make a folder there with any name. So a folder that
 * belongs to another user than its name says is left out, and the one of the process's user comes
 * first. Returns how many, at most STATS_INSTANCES_MAX. */
size_t stats_snapshot_find_instance(uid_t uid, pid_t pid,
                                    struct stats_instance instances[STATS_INSTANCES_MAX]);

/* Finds the present name of the same segment, after another master took it over
 * (stats_segment_own). Returns false, and changes nothing, when the segment has no name. */
bool stats_snapshot_follow_instance(struct stats_instance *instance);
