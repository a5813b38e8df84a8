/* SPDX-License-Identifier: MIT
 *
 * Counters as indices and as words. The table is counters.def.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Indices into the counters of a block. The named ones come first, then answers by status, then
 * requests that could not be read, by the status of their answer, and then by their cause. The last
 * are the faults for which HTTP/2 connections and streams were ended. */
enum stats_counter {
#define STATS_COUNTER(name, kind, unit, section, sentence) STATS_##name,
#include "stats/counters.def"
    STATS_NAMED,
    STATS_BEFORE_STATUSES = STATS_NAMED - 1,
#define STATUS(code, name, reason, sentence) STATS_STATUS_##code,
#include "http/status.def"
#undef STATUS
    STATS_STATUSES_END,
    STATS_BEFORE_UNREADABLE = STATS_STATUSES_END - 1,
#define STATUS(code, name, reason, sentence) STATS_UNREADABLE_##code,
#include "http/status.def"
#undef STATUS
    STATS_UNREADABLE_END,
    STATS_BEFORE_FAULTS = STATS_UNREADABLE_END - 1,
#define FAULT(name, word, status, limit, sentence) STATS_FAULT_##name,
#include "http/fault.def"
#undef FAULT
    STATS_FAULTS_END,
    STATS_BEFORE_HTTP2_FAULTS = STATS_FAULTS_END - 1,
#define FAULT(name, word, error, limit, sentence) STATS_HTTP2_FAULT_##name,
#include "http2/fault.def"
#undef FAULT
    STATS_COUNTERS
};
enum {
    STATS_STATUS_FIRST = STATS_NAMED,
    STATS_STATUSES = STATS_STATUSES_END - STATS_STATUS_FIRST,
    STATS_UNREADABLE_FIRST = STATS_STATUSES_END,
    STATS_FAULT_FIRST = STATS_UNREADABLE_END,
    STATS_FAULTS = STATS_FAULTS_END - STATS_FAULT_FIRST,
    STATS_HTTP2_FAULT_FIRST = STATS_FAULTS_END,
    STATS_HTTP2_FAULTS = STATS_COUNTERS - STATS_HTTP2_FAULT_FIRST
};

enum stats_pair {
#define STATS_PAIR(name, up, down, unit, section, sentence) STATS_PAIR_##name,
#include "stats/counters.def"
    STATS_PAIRS
};

enum stats_histogram {
#define STATS_HISTOGRAM(name, section, sentence) STATS_HISTOGRAM_##name,
#include "stats/counters.def"
    STATS_HISTOGRAMS
};

enum stats_kind { STATS_KIND_COUNTER, STATS_KIND_GAUGE };

enum stats_section {
#define STATS_SECTION(name) STATS_SECTION_##name,
#include "stats/counters.def"
    STATS_SECTIONS
};

struct stats_counter_about {
    const char *name, *unit, *sentence;
    enum stats_kind kind;
    enum stats_section section;
};

struct stats_pair_about {
    struct stats_counter_about about;
    enum stats_counter up, down;
};

/* Indexed by enum stats_counter (the named ones), enum stats_pair and so on. */
extern const struct stats_counter_about stats_counters[STATS_NAMED];
extern const struct stats_pair_about stats_pairs[STATS_PAIRS];
extern const struct stats_counter_about stats_histograms[STATS_HISTOGRAMS];
extern const char *const stats_sections[STATS_SECTIONS];

/* The value of a pair. 0 when `down` is above `up`: the two were read at different times. */
static inline uint64_t stats_counters_pair(unsigned pair, const uint64_t counter[STATS_NAMED])
{
    uint64_t up = counter[stats_pairs[pair].up], down = counter[stats_pairs[pair].down];
    return up > down ? up - down : 0;
}

/* The status codes, in the order of the counters. */
extern const uint16_t stats_statuses[STATS_STATUSES];

/* The cause for which a request was refused: its name ("host_missing") and a sentence without its
 * full stop. In the order of the counters. */
struct stats_fault_about {
    const char *name, *sentence;
};
extern const struct stats_fault_about stats_faults[STATS_FAULTS];

/* The cause for which an HTTP/2 connection was ended or a stream was reset: also the name of the
 * error code that the client got ("ENHANCE_YOUR_CALM"). In the order of the counters. */
struct stats_http2_fault_about {
    const char *name, *sentence, *error;
};
extern const struct stats_http2_fault_about stats_http2_faults[STATS_HTTP2_FAULTS];

/* The index of a code (100 to 599) in stats_statuses; that of 100 for a code that is not there. */
enum { STATS_STATUS_LEAST = 100, STATS_STATUS_MOST = 599 };
extern const uint8_t stats_status_places[STATS_STATUS_MOST - STATS_STATUS_LEAST + 1];

static inline unsigned stats_counters_status_place(unsigned code)
{
    return stats_status_places[code - STATS_STATUS_LEAST];
}

/* A hash of the table and its order. A segment with another hash belongs to another version. */
uint64_t stats_counters_layout(void);
