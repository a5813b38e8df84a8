/* SPDX-License-Identifier: MIT */
#include "load/gather.h"

#include "load/second.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int load_gather_init(struct load_gather *gather, size_t steps, unsigned threads)
{
    *gather = (struct load_gather){ .threads = threads,
                                    .step_count = steps,
                                    .outcomes = calloc(steps, sizeof(*gather->outcomes)),
                                    .gaps = calloc(steps, sizeof(*gather->gaps)),
                                    .portions = calloc(steps, sizeof(*gather->portions)) };
    return gather->outcomes && gather->gaps && gather->portions ? 0 : -ENOMEM;
}

void load_gather_done(struct load_gather *gather)
{
    for (size_t i = 0; gather->outcomes && i < gather->step_count; i++)
        load_outcome_done(&gather->outcomes[i]);
    while (gather->pending) {
        struct load_pending *pending = gather->pending;
        gather->pending = pending->next;
        free(pending->sum);
        free(pending);
    }
    free(gather->outcomes);
    free(gather->gaps);
    free(gather->portions);
}

/* ---- seconds ---- */

/* All threads have handed this second over. */
static int settle(struct load_gather *gather, struct load_slice *sum)
{
    struct load_second *second = &sum->counts;
    int rc = load_second_settle(second, sum->bucket);
    if (sum->step != gather->step || (sum->measured && sum->index == 0)) {
        gather->step = sum->step;
        gather->step_answers = gather->step_errors = 0;
    }
    gather->latest = *second;
    gather->latest.hdr = NULL;
    gather->step_answers += second->answers;
    gather->step_errors += second->errors;
    struct load_outcome *outcome = &gather->outcomes[sum->step];
    if (!sum->measured || rc < 0) {
        load_second_done(second);
        return rc;
    }
    if (sum->index >= outcome->second_count) {
        struct load_second *more =
            reallocarray(outcome->seconds, sum->index + 1, sizeof(*outcome->seconds));
        if (!more) {
            load_second_done(second);
            return -ENOMEM;
        }
        memset(more + outcome->second_count, 0,
               (sum->index + 1 - outcome->second_count) * sizeof(*more));
        outcome->seconds = more;
        outcome->second_count = sum->index + 1;
    }
    outcome->seconds[sum->index] = *second;
    return 0;
}

static void add_slice(struct load_slice *to, const struct load_slice *from)
{
    load_second_count(&to->counts, &from->counts);
    for (size_t i = 0; i < LOAD_SECOND_BUCKETS; i++)
        to->bucket[i] += from->bucket[i];
}

static bool is_same_second(const struct load_slice *a, const struct load_slice *b)
{
    return a->step == b->step && a->index == b->index && a->measured == b->measured;
}

/* Takes one slice. */
static int take_slice(struct load_gather *gather, struct load_slice *slice)
{
    struct load_pending **at = &gather->pending;
    while (*at && !is_same_second((*at)->sum, slice))
        at = &(*at)->next;
    struct load_pending *pending = *at;
    if (!pending) {
        pending = calloc(1, sizeof(*pending));
        if (!pending) {
            free(slice);
            return -ENOMEM;
        }
        *at = pending;
        pending->sum = slice;
    } else {
        add_slice(pending->sum, slice);
        free(slice);
    }
    if (++pending->portions < gather->threads)
        return 0;
    *at = pending->next;
    int rc = settle(gather, pending->sum);
    free(pending->sum);
    free(pending);
    return rc;
}

/* ---- steps ---- */

static int take_portion(struct load_gather *gather, struct load_portion *portion)
{
    struct load_outcome *outcome = &gather->outcomes[portion->step];
    const struct load_outcome *part = &portion->outcome;
    if (gather->portions[portion->step]++ == 0) {
        struct load_outcome before = *outcome; /* its seconds, and what the server took */
        if (load_outcome_init(outcome) < 0) {
            *outcome = before;
            load_tally_portion_free(portion);
            return -ENOMEM;
        }
        outcome->seconds = before.seconds;
        outcome->second_count = before.second_count;
        outcome->server_user_ns = before.server_user_ns;
        outcome->server_system_ns = before.server_system_ns;
        outcome->began_unix_ns = part->began_unix_ns;
        gather->gaps[portion->step] = portion->gaps;
    } else if (outcome->answers == 0) {
        gather->gaps[portion->step] = portion->gaps;
    } else if (part->answers > 0) { /* who has nothing to ask ends no gap of others */
        load_gaps_meet(&gather->gaps[portion->step], &portion->gaps);
    }
    load_outcome_add(outcome, part);
    load_tally_portion_free(portion);
    return 0;
}

/* A list as it was handed over, in the order of that. */
static struct load_slice *reverse(struct load_slice *slices)
{
    struct load_slice *first = NULL;
    while (slices) {
        struct load_slice *next = slices->next;
        slices->next = first;
        first = slices;
        slices = next;
    }
    return first;
}

int load_gather_take(struct load_gather *gather, struct load_slice *slices,
                     struct load_portion *portions)
{
    int rc = 0;
    for (struct load_slice *slice = reverse(slices), *next; slice; slice = next) {
        next = slice->next;
        int taken = take_slice(gather, slice);
        rc = taken < 0 ? taken : rc;
    }
    for (struct load_portion *portion = portions, *next; portion; portion = next) {
        next = portion->next;
        int taken = take_portion(gather, portion);
        rc = taken < 0 ? taken : rc;
    }
    return rc;
}

void load_gather_finish(struct load_gather *gather, struct load_run *run)
{
    while (gather->pending) { /* of a run that was cut short: not all had begun this second */
        struct load_pending *pending = gather->pending;
        gather->pending = pending->next;
        (void)settle(gather, pending->sum);
        free(pending->sum);
        free(pending);
    }
    run->outcomes = gather->outcomes;
    gather->outcomes = NULL;
    run->outcome_count = 0;
    for (size_t i = 0; i < gather->step_count; i++) {
        struct load_outcome *outcome = &run->outcomes[i];
        if (gather->portions[i] == 0) {
            load_outcome_done(outcome);
            continue;
        }
        outcome->step = run->plan->steps[i];
        outcome->longest_gap_ns = load_gaps_longest_ns(&gather->gaps[i]);
        run->outcome_count = i + 1;
    }
}
