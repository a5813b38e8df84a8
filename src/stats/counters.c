/* SPDX-License-Identifier: MIT */
#include "stats/counters.h"

#include "base/hash.h"
#include "base/span.h"

#define ABOUT(name, kind, unit, section, sentence) \
    { \
#name, #unit, sentence, STATS_KIND_##kind, STATS_SECTION_##section \
    }

const struct stats_counter_about stats_counters[STATS_NAMED] = {
#define STATS_COUNTER(name, kind, unit, section, sentence) \
    ABOUT(name, kind, unit, section, sentence),
#include "stats/counters.def"
};

const struct stats_pair_about stats_pairs[STATS_PAIRS] = {
#define STATS_PAIR(name, up, down, unit, section, sentence) \
    { ABOUT(name, GAUGE, unit, section, sentence), STATS_##up, STATS_##down },
#include "stats/counters.def"
};

const struct stats_counter_about stats_histograms[STATS_HISTOGRAMS] = {
#define STATS_HISTOGRAM(name, section, sentence) ABOUT(name, COUNTER, seconds, section, sentence),
#include "stats/counters.def"
};

const char *const stats_sections[STATS_SECTIONS] = {
#define STATS_SECTION(name) #name,
#include "stats/counters.def"
};

const uint16_t stats_statuses[STATS_STATUSES] = {
#define STATUS(code, name, reason, sentence) code,
#include "http/status.def"
#undef STATUS
};

const struct stats_fault_about stats_faults[STATS_FAULTS] = {
#define FAULT(name, word, status, limit, sentence) { word, sentence },
#include "http/fault.def"
#undef FAULT
};

const struct stats_http2_fault_about stats_http2_faults[STATS_HTTP2_FAULTS] = {
#define FAULT(name, word, error, limit, sentence) { word, sentence, #error },
#include "http2/fault.def"
#undef FAULT
};

const uint8_t stats_status_places[STATS_STATUS_MOST - STATS_STATUS_LEAST + 1] = {
#define STATUS(code, name, reason, sentence) \
    [code - STATS_STATUS_LEAST] = STATS_STATUS_##code - STATS_STATUS_FIRST,
#include "http/status.def"
#undef STATUS
};

uint64_t stats_counters_layout(void)
{
    static const char text[] =
#define STATS_COUNTER(name, kind, unit, section, sentence) #name "/" #kind "/" #unit ","
#include "stats/counters.def"
#define STATS_PAIR(name, up, down, unit, section, sentence) #name "=" #up "-" #down ","
#include "stats/counters.def"
#define STATS_HISTOGRAM(name, section, sentence) #name ","
#include "stats/counters.def"
#define STATUS(code, name, reason, sentence) #code ","
#include "http/status.def"
#undef STATUS
#define FAULT(name, word, status, limit, sentence) word ","
#include "http/fault.def"
#undef FAULT
#define FAULT(name, word, error, limit, sentence) "http2_" word ","
#include "http2/fault.def"
#undef FAULT
        "";
    return hash_bytes(span_of(text, sizeof(text) - 1), 0);
}
