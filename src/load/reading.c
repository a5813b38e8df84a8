/* SPDX-License-Identifier: MIT */
#include "load/reading.h"

#include "base/duration.h"
#include "load/schedule.h"
#include "tls/client.h"

#include <stdlib.h>

enum { USERS_DEFAULT = 10, OPEN_USERS_DEFAULT = 100 };

#define NOT_GIVEN UINT64_MAX

/* Streams go with all loops. Pipelined requests of HTTP/1.1 share one queue: an answer that waits
 * behind another one has no response time of its own that a loop could use. */
static bool check_pipeline(const struct load_plan *plan, struct option_refusal *refusal)
{
    bool plain = plan->loop == LOAD_CLOSED && plan->keep_alive && plan->think.high_ns == 0;
    if (plan->pipeline <= 1 || plain)
        return true;
    if (!plan->http2)
        return option_refuse(refusal, "--pipeline of HTTP/1.1 keeps connections open and busy, so "
                                      "it excludes --think, --rate, --pace and --no-keepalive; "
                                      "streams (--http2) go with them");
    if (!plan->keep_alive && plan->loop != LOAD_CLOSED)
        return option_refuse(refusal,
                             "--no-keepalive with --pipeline makes a connection for each %u "
                             "requests that start together, and with --%s each request starts at "
                             "a time of its own; leave out one of the three",
                             plan->pipeline, plan->loop == LOAD_OPEN ? "rate" : "pace");
    return true;
}

static bool check_agreement(const struct load_reading *reading, struct option_refusal *refusal)
{
    const struct load_plan *plan = &reading->plan;
    bool thinks = plan->think.high_ns > 0;
    if (plan->target_count == 0)
        return option_refuse(refusal, "a URL is missing: weir load http://127.0.0.1:8080/");
    if (plan->requests > 0 && plan->duration_ns > 0)
        return option_refuse(refusal,
                             "--requests and --duration both say when it ends; choose one");
    if (reading->has_steps && reading->users > 0)
        return option_refuse(refusal, "--users and --steps both say how many users; choose one");
    if (plan->loop == LOAD_OPEN && plan->pace_ns > 0)
        return option_refuse(refusal,
                             "--pace is for each user, --rate for all together; choose one");
    if (plan->loop != LOAD_CLOSED && thinks)
        return option_refuse(refusal,
                             "--think has no meaning with --%s, which says when requests start",
                             plan->loop == LOAD_OPEN ? "rate" : "pace");
    if (plan->poisson && plan->loop != LOAD_OPEN)
        return option_refuse(refusal, "--poisson goes with --rate");
    return check_pipeline(plan, refusal);
}

/* Makes the side of TLS that all connections share, if a target uses it. */
static bool make_client(struct load_reading *reading, struct option_refusal *refusal)
{
    struct load_plan *plan = &reading->plan;
    char why[TLS_CLIENT_WHY_MAX];
    bool given = reading->tls != LOAD_TLS_NONE || reading->cacert || plan->insecure, used = false;
    for (size_t i = 0; i < plan->target_count; i++)
        used = used || plan->targets[i].tls;
    if (given && !used)
        return option_refuse(refusal, "--tls, --cacert and --insecure go with https://");
    if (reading->cacert && plan->insecure)
        return option_refuse(refusal,
                             "--cacert verifies certificates, --insecure does not; choose one");
    if (!used)
        return true;
    plan->tls = reading->tls != LOAD_TLS_NONE ? reading->tls : LOAD_TLS_RESUME;
    const struct tls_client_plan sides = { .authorities = reading->cacert,
                                           .insecure = plan->insecure,
                                           .http2 = plan->http2 };
    plan->client = tls_client_new(&sides, why);
    return plan->client || option_refuse(refusal, "--cacert: %s", why);
}

/* Each thread sends its part of a rate, by users of its own. */
static bool check_threads(const struct load_plan *plan, struct option_refusal *refusal)
{
    for (size_t i = 0; i < plan->step_count; i++)
        if (plan->loop == LOAD_OPEN && plan->steps[i].users < plan->threads)
            return option_refuse(refusal,
                                 "--rate: a thread without a user could not send its part, and %u "
                                 "threads share %u user%s; use more --users or fewer --threads",
                                 plan->threads, plan->steps[i].users,
                                 plan->steps[i].users == 1 ? "" : "s");
    return true;
}

/* Reduces the plan to the part of this shard. */
static bool reduce_to_shard(struct load_plan *plan, uint64_t users, struct option_refusal *refusal)
{
    for (size_t i = 0; i < plan->step_count; i++) {
        struct load_step *step = &plan->steps[i];
        uint64_t all = step->users > 0 ? step->users : users;
        step->users = (unsigned)load_schedule_share(all, plan->shard, plan->shards);
        step->rate /= plan->shards;
        if (step->users == 0)
            return option_refuse(refusal, "%llu users cannot be shared among %u parts",
                                 (unsigned long long)all, plan->shards);
    }
    return plan->requests == 0 || plan->requests >= plan->shards ||
           option_refuse(refusal, "%llu requests cannot be shared among %u parts",
                         (unsigned long long)plan->requests, plan->shards);
}

bool load_reading_finish(struct load_reading *reading, struct option_refusal *refusal)
{
    struct load_plan *plan = &reading->plan;
    struct load_manner *manner = &reading->manner;
    plan->keep_alive = !reading->no_keepalive;
    plan->spin = plan->spin || plan->spin_anyway;
    if (plan->pace_ns > 0 && plan->loop == LOAD_CLOSED)
        plan->loop = LOAD_PACED;
    if (!check_agreement(reading, refusal))
        return false;
    if (plan->step_count == 0)
        plan->steps[plan->step_count++] = (struct load_step){ 0 };
    if (plan->requests == 0 && plan->duration_ns == 0)
        plan->duration_ns = 10 * DURATION_SECOND;
    if (plan->warmup_ns == NOT_GIVEN)
        plan->warmup_ns = plan->requests == 0 ? DURATION_SECOND : 0;
    uint64_t fallback = plan->loop == LOAD_OPEN ? OPEN_USERS_DEFAULT : USERS_DEFAULT;
    if (!reduce_to_shard(plan, reading->users > 0 ? reading->users : fallback, refusal) ||
        !check_threads(plan, refusal))
        return false;
    if (!manner->method)
        manner->method = manner->has_data ? "POST" : "GET";
    plan->head = strcmp(manner->method, "HEAD") == 0;
    manner->fields = reading->fields;
    manner->keep_alive = plan->keep_alive;
    return make_client(reading, refusal) && load_target_make_requests(plan, manner, refusal);
}

bool load_reading_begin(struct load_reading *reading)
{
    *reading = (struct load_reading){ .plan = {
                                          .steps = calloc(LOAD_STEPS_MAX, sizeof(struct load_step)),
                                          .warmup_ns = NOT_GIVEN,
                                          .pipeline = 1,
                                          .connect_timeout_ns = 5 * DURATION_SECOND,
                                          .response_timeout_ns = 30 * DURATION_SECOND,
                                          .threads = 1,
                                          .seed = 1,
                                          .shards = 1,
                                      } };
    return reading->plan.steps != NULL;
}

bool load_reading_url(struct load_reading *reading, const char *url, struct option_refusal *refusal)
{
    return load_target_add(&reading->plan, span_text(url), 1, refusal);
}

void load_reading_done(struct load_reading *reading)
{
    load_target_free_all(&reading->plan);
    tls_client_free(reading->plan.client);
    reading->plan.client = NULL;
    free(reading->plan.steps);
    reading->plan.steps = NULL;
    free(reading->data);
    reading->data = NULL;
}
