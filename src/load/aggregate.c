/* SPDX-License-Identifier: MIT */
#include "load/aggregate.h"

#include "load/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int load_aggregate_init(struct load_aggregate *aggregate, size_t steps, unsigned threads)
{
    *aggregate = (struct load_aggregate){ .threads = threads,
                                          .step_count = steps,
                                          .outcomes = calloc(steps, sizeof(*aggregate->outcomes)),
                                          .gaps = calloc(steps, sizeof(*aggregate->gaps)),
                                          .portions = calloc(steps, sizeof(*aggregate->portions)) };
    return aggregate->outcomes && aggregate->gaps && aggregate->portions ? 0 : -ENOMEM;
}

void load_aggregate_done(struct load_aggregate *aggregate)
{
    for (size_t i = 0; aggregate->outcomes && i < aggregate->step_count; i++)
        load_result_free_outcome(&aggregate->outcomes[i]);
    while (aggregate->pending) {
        struct load_pending *pending = aggregate->pending;
        aggregate->pending = pending->next;
        free(pending->sum);
        free(pending);
    }
    free(aggregate->outcomes);
    free(aggregate->gaps);
    free(aggregate->portions);
}

/* ---- seconds ---- */

/* Completes a second that all threads have handed over. */
static int complete_second(struct load_aggregate *aggregate, struct load_slice *sum)
{
    struct load_second *second = &sum->counts;
    int rc = load_result_settle_second(second, sum->bucket);
    if (sum->step != aggregate->step || (sum->measured && sum->index == 0)) {
        aggregate->step = sum->step;
        aggregate->step_answers = aggregate->step_errors = 0;
    }
    aggregate->latest = *second;
    aggregate->latest.hdr = NULL;
    aggregate->step_answers += second->answers;
    aggregate->step_errors += second->errors;
    struct load_outcome *outcome = &aggregate->outcomes[sum->step];
    if (!sum->measured || rc < 0) {
        load_result_free_second(second);
        return rc;
    }
    if (sum->index >= outcome->second_count) {
        struct load_second *more =
            reallocarray(outcome->seconds, sum->index + 1, sizeof(*outcome->seconds));
        if (!more) {
            load_result_free_second(second);
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

static void add_to_slice(struct load_slice *to, const struct load_slice *from)
{
    load_result_count_second(&to->counts, &from->counts);
    for (size_t i = 0; i < LOAD_SECOND_BUCKETS; i++)
        to->bucket[i] += from->bucket[i];
}

static bool is_same_second(const struct load_slice *a, const struct load_slice *b)
{
    return a->step == b->step && a->index == b->index && a->measured == b->measured;
}

static int take_slice(struct load_aggregate *aggregate, struct load_slice *slice)
{
    struct load_pending **at = &aggregate->pending;
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
        add_to_slice(pending->sum, slice);
        free(slice);
    }
    if (++pending->portions < aggregate->threads)
        return 0;
    *at = pending->next;
    int rc = complete_second(aggregate, pending->sum);
    free(pending->sum);
    free(pending);
    return rc;
}

/* ---- steps ---- */

static int take_portion(struct load_aggregate *aggregate, struct load_portion *portion)
{
    struct load_outcome *outcome = &aggregate->outcomes[portion->step];
    const struct load_outcome *part = &portion->outcome;
    if (aggregate->portions[portion->step]++ == 0) {
        struct load_outcome before = *outcome; /* holds its seconds and the server's CPU time */
        if (load_result_init_outcome(outcome) < 0) {
            *outcome = before;
            load_tally_portion_free(portion);
            return -ENOMEM;
        }
        outcome->seconds = before.seconds;
        outcome->second_count = before.second_count;
        outcome->server_user_ns = before.server_user_ns;
        outcome->server_system_ns = before.server_system_ns;
        outcome->began_unix_ns = part->began_unix_ns;
        aggregate->gaps[portion->step] = portion->gaps;
    } else if (outcome->answers == 0) {
        aggregate->gaps[portion->step] = portion->gaps;
    } else if (part->answers > 0) { /* a thread without requests ends no gap of the others */
        load_tally_intersect_gaps(&aggregate->gaps[portion->step], &portion->gaps);
    }
    load_result_add_outcome(outcome, part);
    load_tally_portion_free(portion);
    return 0;
}

/* Puts a list into the order in which it was handed over. */
static struct load_slice *reverse_slices(struct load_slice *slices)
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

int load_aggregate_take(struct load_aggregate *aggregate, struct load_slice *slices,
                        struct load_portion *portions)
{
    int rc = 0;
    for (struct load_slice *slice = reverse_slices(slices), *next; slice; slice = next) {
        next = slice->next;
        int taken = take_slice(aggregate, slice);
        rc = taken < 0 ? taken : rc;
    }
    for (struct load_portion *portion = portions, *next; portion; portion = next) {
        next = portion->next;
        int taken = take_portion(aggregate, portion);
        rc = taken < 0 ? taken : rc;
    }
    return rc;
}

void load_aggregate_finish(struct load_aggregate *aggregate, struct load_run *run)
{
    while (
        aggregate->pending) { /* of an interrupted run: some threads have not reached this second */
        struct load_pending *pending = aggregate->pending;
        aggregate->pending = pending->next;
        (void)complete_second(aggregate, pending->sum);
        free(pending->sum);
        free(pending);
    }
    run->outcomes = aggregate->outcomes;
    aggregate->outcomes = NULL;
    run->outcome_count = 0;
    for (size_t i = 0; i < aggregate->step_count; i++) {
        struct load_outcome *outcome = &run->outcomes[i];
        if (aggregate->portions[i] == 0) {
            load_result_free_outcome(outcome);
            continue;
        }
        outcome->step = run->plan->steps[i];
        outcome->longest_gap_ns = load_tally_longest_gap_ns(&aggregate->gaps[i]);
        run->outcome_count = i + 1;
    }
}
