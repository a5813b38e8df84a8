/* SPDX-License-Identifier: MIT */
#include "load/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* 2^64 divided by the golden ratio: its multiples are spread evenly. */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

struct load_random load_schedule_random_of(uint64_t seed, uint64_t stream)
{
    return (struct load_random){ mix(mix(seed + GOLDEN) ^ (stream * GOLDEN + 1)) };
}

uint64_t load_schedule_random_next(struct load_random *random)
{
    random->state += GOLDEN;
    return mix(random->state);
}

uint64_t load_schedule_think_draw(const struct load_think *think, struct load_random *random)
{
    double low = (double)think->low_ns, span = (double)(think->high_ns - think->low_ns);
    switch (think->kind) {
    case LOAD_THINK_CONSTANT:
        return think->low_ns;
    case LOAD_THINK_EXPONENTIAL:
        return (uint64_t)(-log(load_schedule_random_unit(random)) * low);
    case LOAD_THINK_UNIFORM:
        return (uint64_t)(low + span * load_schedule_random_unit(random));
    }
    return 0;
}

uint64_t load_schedule_think_mean_ns(const struct load_think *think)
{
    return think->low_ns / 2 + think->high_ns / 2 + (think->low_ns & think->high_ns & 1);
}

uint64_t load_schedule_stagger_ns(uint64_t index, uint64_t span_ns)
{
    return (uint64_t)((double)(index * GOLDEN) * 0x1p-64 * (double)span_ns);
}

/* Writes the weights to `keep`, scaled to a mean of 1. */
static void scale_weights(double *keep, const struct load_target *targets, size_t count,
                          double zipf)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        keep[i] = zipf > 0 ? pow((double)(i + 1), -zipf) : targets[i].weight;
        sum += keep[i];
    }
    for (size_t i = 0; i < count; i++)
        keep[i] *= (double)count / sum;
}

/* Each column below the mean is filled up from a column above it. */
int load_schedule_choice_init(struct load_choice *choice, const struct load_target *targets,
                              size_t count, double zipf)
{
    *choice = (struct load_choice){ .count = count,
                                    .keep = calloc(count, sizeof(*choice->keep)),
                                    .other = calloc(count, sizeof(*choice->other)) };
    uint32_t *stack = calloc(count, sizeof(*stack));
    if (!choice->keep || !choice->other || !stack) {
        free(stack);
        load_schedule_choice_done(choice);
        return -ENOMEM;
    }
    scale_weights(choice->keep, targets, count, zipf);
    size_t low = 0, high = count; /* low ones from the front of the stack, high ones from its end */
    for (size_t i = 0; i < count; i++) {
        choice->other[i] = (uint32_t)i;
        if (choice->keep[i] < 1)
            stack[low++] = (uint32_t)i;
        else
            stack[--high] = (uint32_t)i;
    }
    while (low > 0 && high < count) {
        uint32_t needy = stack[--low], rich = stack[high];
        choice->other[needy] = rich;
        choice->keep[rich] -= 1 - choice->keep[needy];
        if (choice->keep[rich] < 1) {
            high++;
            stack[low++] = rich;
        }
    }
    free(stack);
    return 0;
}

void load_schedule_choice_done(struct load_choice *choice)
{
    free(choice->keep);
    free(choice->other);
    *choice = (struct load_choice){ 0 };
}

size_t load_schedule_choice_draw(const struct load_choice *choice, struct load_random *random)
{
    if (choice->count == 1)
        return 0;
    double at = (load_schedule_random_unit(random) - 0x1p-53) * (double)choice->count;
    size_t column = (size_t)at;
    return at - (double)column < choice->keep[column] ? column : choice->other[column];
}

/* ---- arrivals ---- */

static void set_next_arrival(struct load_arrivals *arrivals)
{
    if (arrivals->poisson)
        arrivals->at_ns += -log(load_schedule_random_unit(&arrivals->random)) * arrivals->gap_ns;
    else /* a sum of gaps would drift */
        arrivals->at_ns = ((double)arrivals->count + arrivals->phase) * arrivals->gap_ns;
    arrivals->count++;
}

void load_schedule_arrivals_init(struct load_arrivals *arrivals, double rate, unsigned index,
                                 unsigned of, bool poisson, struct load_random random,
                                 uint64_t from_ns)
{
    *arrivals = (struct load_arrivals){ .from_ns = from_ns,
                                        .gap_ns = 1e9 * of / rate,
                                        .phase = (double)index / of,
                                        .poisson = poisson,
                                        .random = random };
    set_next_arrival(arrivals);
}

void load_schedule_arrivals_begin(struct load_arrivals *arrivals, const struct load_plan *plan,
                                  size_t step, unsigned thread, uint64_t from_ns)
{
    uint64_t stream = (uint64_t)1 << 40 | step << 20 | plan->shard << 10;
    struct load_random random =
        load_schedule_random_of(plan->seed, stream ^ (uint64_t)thread << 50);
    load_schedule_arrivals_init(arrivals, plan->steps[step].rate * plan->shards,
                                thread * plan->shards + plan->shard, plan->threads * plan->shards,
                                plan->poisson, random, from_ns);
}

void load_schedule_arrivals_take(struct load_arrivals *arrivals)
{
    set_next_arrival(arrivals);
}

uint64_t load_schedule_arrivals_pass(struct load_arrivals *arrivals, uint64_t until_ns)
{
    uint64_t passed = 0;
    for (; load_schedule_arrivals_due_ns(arrivals) < until_ns; passed++)
        load_schedule_arrivals_take(arrivals);
    return passed;
}
