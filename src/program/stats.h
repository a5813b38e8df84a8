/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: what it shows, and the three ways to show it.
 */
#pragma once

#include "stats/reader.h"

#include <stdio.h>

/* What the processes of the instance have taken of the machine. */
struct program_usage {
    unsigned processes;
    uint64_t user_ns, system_ns; /* with those that have ended */
    uint64_t resident_bytes;
    uint64_t files;                   /* open descriptors, of all */
    uint64_t files_most, files_limit; /* of the process that is nearest to its limit */
};

struct program_stats {
    const struct stats_snapshot *snapshot;
    struct program_usage usage; /* zero when it does not run */
    uint64_t beat_age_ns;       /* since the master was last seen at work */
    int64_t read_s;
};

void program_stats_print_text(const struct program_stats *stats, bool explain, FILE *out);
void program_stats_print_json(const struct program_stats *stats, FILE *out);
void program_stats_print_prometheus(const struct program_stats *stats, FILE *out);
