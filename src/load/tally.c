/* SPDX-License-Identifier: MIT */
#include "load/tally.h"

#include "load/result.h"

#include <errno.h>
#include <stdlib.h>

/* ---- what a thread hands over ---- */

struct load_portion *load_tally_portion_new(size_t step)
{
    struct load_portion *portion = calloc(1, sizeof(*portion));
    if (!portion || load_result_init_outcome(&portion->outcome) < 0) {
        free(portion);
        return NULL;
    }
    portion->step = step;
    return portion;
}

void load_tally_portion_free(struct load_portion *portion)
{
    if (portion)
        load_result_free_outcome(&portion->outcome);
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

static uint64_t gap_length(const struct load_gap *gap)
{
    return gap->to_ns - gap->from_ns;
}

/* Keeps the gap if it is one of the longest. */
static void keep_gap(struct load_gaps *gaps, struct load_gap gap)
{
    if (gaps->count < LOAD_GAPS) {
        gaps->gap[gaps->count++] = gap;
    } else {
        unsigned shortest = 0;
        for (unsigned i = 1; i < LOAD_GAPS; i++)
            shortest = gap_length(&gaps->gap[i]) < gap_length(&gaps->gap[shortest]) ? i : shortest;
        if (gap_length(&gaps->gap[shortest]) >= gap_length(&gap))
            return;
        gaps->gap[shortest] = gap;
    }
    if (gaps->count < LOAD_GAPS)
        return;
    gaps->least_ns = UINT64_MAX;
    for (unsigned i = 0; i < LOAD_GAPS; i++)
        if (gap_length(&gaps->gap[i]) < gaps->least_ns)
            gaps->least_ns = gap_length(&gaps->gap[i]);
}

void load_tally_end_gap(struct load_tally *tally, uint64_t now_ns, bool answered, unsigned over)
{
    if (answered || tally->awaited == over) {
        struct load_gap gap = { tally->gap_from_ns, now_ns };
        if (tally->awaited > 0 && gap.from_ns < gap.to_ns &&
            gap_length(&gap) > tally->portion->gaps.least_ns)
            keep_gap(&tally->portion->gaps, gap);
        tally->gap_from_ns = now_ns;
    }
    tally->awaited -= over;
}

void load_tally_intersect_gaps(struct load_gaps *gaps, const struct load_gaps *other)
{
    struct load_gaps met = { 0 };
    for (unsigned i = 0; i < gaps->count; i++) {
        for (unsigned j = 0; j < other->count; j++) {
            struct load_gap a = gaps->gap[i], b = other->gap[j];
            struct load_gap both = { a.from_ns > b.from_ns ? a.from_ns : b.from_ns,
                                     a.to_ns < b.to_ns ? a.to_ns : b.to_ns };
            if (both.from_ns < both.to_ns && gap_length(&both) > met.least_ns)
                keep_gap(&met, both);
        }
    }
    *gaps = met;
}

uint64_t load_tally_longest_gap_ns(const struct load_gaps *gaps)
{
    uint64_t longest_ns = 0;
    for (unsigned i = 0; i < gaps->count; i++)
        if (gap_length(&gaps->gap[i]) > longest_ns)
            longest_ns = gap_length(&gaps->gap[i]);
    return longest_ns;
}
