/* SPDX-License-Identifier: MIT */
#include "load/tally.h"

#include "load/second.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what is handed over ---- */

void load_outcome_done(struct load_outcome *outcome)
{
    load_durations_done(&outcome->response);
    load_durations_done(&outcome->intended);
    load_durations_done(&outcome->connect);
    load_durations_done(&outcome->first_byte);
    load_durations_done(&outcome->lag);
    for (size_t i = 0; i < outcome->second_count; i++)
        load_second_done(&outcome->seconds[i]);
    free(outcome->seconds);
    *outcome = (struct load_outcome){ 0 };
}

int load_outcome_init(struct load_outcome *outcome)
{
    *outcome = (struct load_outcome){ 0 };
    if (load_durations_init(&outcome->response) < 0 ||
        load_durations_init(&outcome->intended) < 0 || load_durations_init(&outcome->connect) < 0 ||
        load_durations_init(&outcome->lag) < 0 || load_durations_init(&outcome->first_byte) < 0) {
        load_outcome_done(outcome);
        return -ENOMEM;
    }
    return 0;
}

struct load_portion *load_tally_portion_new(size_t step)
{
    struct load_portion *portion = calloc(1, sizeof(*portion));
    if (!portion || load_outcome_init(&portion->outcome) < 0) {
        free(portion);
        return NULL;
    }
    portion->step = step;
    return portion;
}

void load_tally_portion_free(struct load_portion *portion)
{
    if (portion)
        load_outcome_done(&portion->outcome);
    free(portion);
}

struct load_slice *load_tally_slice_new(size_t step, size_t index, bool measured)
{
    CHECK(histogram_buckets(LOAD_LONGEST_NS, LOAD_SECOND_BITS) == LOAD_SECOND_BUCKETS);
    struct load_slice *slice = calloc(1, sizeof(*slice));
    if (slice) {
        slice->step = step;
        slice->index = index;
        slice->measured = measured;
    }
    return slice;
}

/* ---- counting ---- */

void load_tally_answer(struct load_tally *tally, const struct load_ended *ended)
{
    struct load_outcome *outcome = &tally->portion->outcome;
    struct load_second *second = &tally->slice->counts;
    outcome->answers++;
    outcome->answers_reused += ended->reused;
    outcome->status[ended->status]++;
    outcome->redirects += ended->status >= 300 && ended->status < 400;
    outcome->body_bytes += ended->body_bytes;
    load_durations_add(&outcome->response, ended->response_ns);
    load_durations_add(&outcome->first_byte, ended->first_byte_ns);
    if (ended->intended_ns != UINT64_MAX)
        load_durations_add(&outcome->intended, ended->intended_ns);

    uint64_t ns = ended->response_ns < LOAD_LONGEST_NS ? ended->response_ns : LOAD_LONGEST_NS;
    second->answers++;
    second->body_bytes += ended->body_bytes;
    second->by_class[ended->status / 100 - 1]++;
    second->most_ns = ns > second->most_ns ? ns : second->most_ns;
    tally->slice->bucket[histogram_index(ns, LOAD_SECOND_BITS)]++;
}

void load_tally_error(struct load_tally *tally, enum load_error error)
{
    tally->portion->outcome.error[error]++;
    tally->slice->counts.errors++;
}

/* ---- times without an answer ---- */

static uint64_t length(const struct load_gap *gap)
{
    return gap->to_ns - gap->from_ns;
}

/* Keeps the longest ones. */
static void keep_gap(struct load_gaps *gaps, struct load_gap gap)
{
    if (gaps->count < LOAD_GAPS) {
        gaps->gap[gaps->count++] = gap;
    } else {
        unsigned shortest = 0;
        for (unsigned i = 1; i < LOAD_GAPS; i++)
            shortest = length(&gaps->gap[i]) < length(&gaps->gap[shortest]) ? i : shortest;
        if (length(&gaps->gap[shortest]) >= length(&gap))
            return;
        gaps->gap[shortest] = gap;
    }
    if (gaps->count < LOAD_GAPS)
        return;
    gaps->least_ns = UINT64_MAX;
    for (unsigned i = 0; i < LOAD_GAPS; i++)
        if (length(&gaps->gap[i]) < gaps->least_ns)
            gaps->least_ns = length(&gaps->gap[i]);
}

void load_tally_end_gap(struct load_tally *tally, uint64_t now_ns, bool answered, unsigned over)
{
    if (answered || tally->awaited == over) {
        struct load_gap gap = { tally->gap_from_ns, now_ns };
        if (tally->awaited > 0 && gap.from_ns < gap.to_ns &&
            length(&gap) > tally->portion->gaps.least_ns)
            keep_gap(&tally->portion->gaps, gap);
        tally->gap_from_ns = now_ns;
    }
    tally->awaited -= over;
}

void load_gaps_meet(struct load_gaps *gaps, const struct load_gaps *other)
{
    struct load_gaps met = { 0 };
    for (unsigned i = 0; i < gaps->count; i++) {
        for (unsigned j = 0; j < other->count; j++) {
            struct load_gap a = gaps->gap[i], b = other->gap[j];
            struct load_gap both = { a.from_ns > b.from_ns ? a.from_ns : b.from_ns,
                                     a.to_ns < b.to_ns ? a.to_ns : b.to_ns };
            if (both.from_ns < both.to_ns && length(&both) > met.least_ns)
                keep_gap(&met, both);
        }
    }
    *gaps = met;
}

uint64_t load_gaps_longest_ns(const struct load_gaps *gaps)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < gaps->count; i++)
        if (length(&gaps->gap[i]) > longest_ns)
            longest_ns = length(&gaps->gap[i]);
    return longest_ns;
}

/* ---- adding up ---- */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void load_outcome_add(struct load_outcome *to, const struct load_outcome *from)
{
#define LOAD_COUNT(name, how) to->name = how(to->name, from->name);
#define LOAD_DURATIONS(name)  load_durations_merge(&to->name, &from->name);
#include "load/counts.def"
#undef LOAD_COUNT
#undef LOAD_DURATIONS
    for (unsigned i = 0; i < LOAD_STATUS_MAX; i++)
        to->status[i] += from->status[i];
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        to->error[i] += from->error[i];
    to->thought_ns += from->thought_ns;
    to->user_ns += from->user_ns;
}
