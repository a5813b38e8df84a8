/* SPDX-License-Identifier: MIT */
#include "load/parse.h"

#include "base/duration.h"
#include "load/schedule.h"

#include <stdlib.h>

enum { USERS_DEFAULT = 10, OPEN_USERS_DEFAULT = 100 };

#define SECOND DURATION_SECOND

/* ---- words ---- */

struct words {
    const char *const *next;
    const struct load_option_set *more;
    struct load_reading *reading;
    struct load_refusal *refusal;
};

static const struct load_option *find(const struct load_option *options, struct span name,
                                      char letter)
{
    for (const struct load_option *option = options; option->name; option++)
        if (letter ? option->letter == letter : span_equal(name, span_text(option->name)))
            return option;
    return NULL;
}

/* Reads one option; its value is what is attached, or the next word. */
static bool take_option(struct words *words, const char *word, struct span name, char letter,
                        const char *attached)
{
    void *context = words->reading;
    const struct load_option *option = find(load_option_table, name, letter);
    if (!option) {
        option = find(words->more->options, name, letter);
        context = words->more->context;
    }
    if (!option) {
        words->refusal->unknown = word;
        return load_refuse(words->refusal, "unknown option %.*s", (int)(name.at + name.len - word),
                           word);
    }
    if (!option->placeholder)
        return attached ? load_refuse(words->refusal, "--%s takes no value", option->name)
                        : option->take(context, "", words->refusal);
    const char *value = attached ? attached : *words->next;
    if (!value)
        return load_refuse(words->refusal, "--%s needs a value: --%s %s", option->name,
                           option->name, option->placeholder);
    words->next += !attached;
    return option->take(context, value, words->refusal);
}

static bool take_word(struct words *words, const char *word)
{
    if (word[0] != '-' || word[1] == '\0')
        return load_target_add(words->reading->plan, span_text(word), 1, words->refusal);
    if (word[1] != '-')
        return take_option(words, word, span_of(word + 1, 1), word[1], word[2] ? word + 2 : NULL);
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    return take_option(words, word, span_of(word + 2, len - 2), '\0', equals ? equals + 1 : NULL);
}

/* ---- what they amount to ---- */

static bool agree(const struct load_plan *plan, const struct load_reading *reading,
                  struct load_refusal *refusal)
{
    bool thinks = plan->think.high_ns > 0;
    if (plan->target_count == 0)
        return load_refuse(refusal, "a URL is missing: weir load http://127.0.0.1:8080/");
    if (plan->requests > 0 && reading->has_duration)
        return load_refuse(refusal, "--requests and --duration both say when it ends; choose one");
    if (reading->has_steps && reading->users > 0)
        return load_refuse(refusal, "--users and --steps both say how many users; choose one");
    if (plan->loop != LOAD_CLOSED && thinks)
        return load_refuse(refusal, "--think has no meaning with --%s, which says when to ask",
                           plan->loop == LOAD_OPEN ? "rate" : "pace");
    if (plan->poisson && plan->loop != LOAD_OPEN)
        return load_refuse(refusal, "--poisson goes with --rate");
    if (plan->pipeline > 1 && (thinks || plan->loop != LOAD_CLOSED || !plan->keep_alive))
        return load_refuse(refusal, "--pipeline asks all the time, on connections that it keeps: "
                                    "it goes with no --think, --rate, --pace or --no-keepalive");
    return true;
}

/* What this shard has of the whole. */
static bool take_share(struct load_plan *plan, uint64_t users, struct load_refusal *refusal)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        struct load_step *step = &plan->steps[i];
        uint64_t all = step->users > 0 ? step->users : users;
        step->users = (unsigned)load_share(all, plan->shard, plan->shards);
        step->rate /= plan->shards;
        if (step->users == 0)
            return load_refuse(refusal, "%llu users cannot be shared among %u parts",
                               (unsigned long long)all, plan->shards);
    }
    return plan->requests == 0 || plan->requests >= plan->shards ||
           load_refuse(refusal, "%llu requests cannot be shared among %u parts",
                       (unsigned long long)plan->requests, plan->shards);
}

static bool complete(struct load_reading *reading, struct load_refusal *refusal)
{
    struct load_plan *plan = reading->plan;
    struct load_manner *manner = &reading->manner;
    if (!agree(plan, reading, refusal))
        return false;
    if (plan->step_count == 0)
        plan->steps[plan->step_count++] = (struct load_step){ 0 };
    if (plan->requests == 0 && !reading->has_duration)
        plan->duration_ns = 10 * SECOND;
    if (plan->requests == 0 && !reading->has_warmup)
        plan->warmup_ns = SECOND;
    uint64_t fallback = plan->loop == LOAD_OPEN ? OPEN_USERS_DEFAULT : USERS_DEFAULT;
    if (!take_share(plan, reading->users > 0 ? reading->users : fallback, refusal))
        return false;
    if (!manner->method)
        manner->method = manner->has_data ? "POST" : "GET";
    plan->head = strcmp(manner->method, "HEAD") == 0;
    manner->fields = reading->fields;
    manner->keep_alive = plan->keep_alive;
    return load_target_make_requests(plan, manner, refusal);
}

bool load_parse(const char *const *given, const struct load_option_set *more,
                struct load_plan *ret_plan, struct load_refusal *refusal)
{
    *refusal = (struct load_refusal){ 0 };
    *ret_plan = (struct load_plan){ .steps = calloc(LOAD_STEPS_MAX, sizeof(*ret_plan->steps)),
                                    .keep_alive = true,
                                    .pipeline = 1,
                                    .connect_timeout_ns = 5 * SECOND,
                                    .response_timeout_ns = 30 * SECOND,
                                    .threads = 1,
                                    .seed = 1,
                                    .shards = 1 };
    if (!ret_plan->steps)
        return load_refuse(refusal, "out of memory");
    struct load_reading reading = { .plan = ret_plan };
    struct words words = { given, more, &reading, refusal };
    bool good = true;
    while (good && *words.next) {
        const char *word = *words.next++;
        good = take_word(&words, word);
    }
    good = good && complete(&reading, refusal);
    free(reading.data);
    return good;
}

void load_parse_done(struct load_plan *plan)
{
    load_target_free_all(plan);
    free(plan->steps);
    plan->steps = NULL;
}
