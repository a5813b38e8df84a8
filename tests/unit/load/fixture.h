/* SPDX-License-Identifier: MIT
 *
 * Runs without a server: outcomes with the numbers that a test needs.
 */
#pragma once

#include "load/result.h"

#include <stdlib.h>
#include <string.h>

enum { FIXTURE_STEPS_MAX = 4 };

struct fixture {
    struct load_target target;
    struct load_plan plan;
    struct load_outcome outcomes[FIXTURE_STEPS_MAX];
    struct load_run run;
};

/* The next number of a fixed sequence. */
static inline uint64_t fixture_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t mixed = (*state ^ *state >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return mixed ^ mixed >> 32;
}

/* A closed loop with a think time of 8 ms, and steps without measurements. */
static inline void fixture_init(struct fixture *f, size_t steps)
{
    memset(f, 0, sizeof(*f));
    f->target = (struct load_target){ .host = "127.0.0.1:8080",
                                      .path = "/",
                                      .weight = 1,
                                      .request = "GET / HTTP/1.1\r\n\r\n",
                                      .request_len = 18 };
    f->plan = (struct load_plan){ .targets = &f->target,
                                  .target_count = 1,
                                  .step_count = steps,
                                  .think = { LOAD_THINK_CONSTANT, 8000000, 8000000 },
                                  .duration_ns = UINT64_C(10) * 1000000000,
                                  .keep_alive = true,
                                  .pipeline = 1,
                                  .threads = 1,
                                  .shards = 1 };
    f->run = (struct load_run){ .plan = &f->plan,
                                .command_line = "weir load http://127.0.0.1:8080/",
                                .server_cpus = 4,
                                .outcome_count = steps,
                                .outcomes = f->outcomes };
    for (size_t i = 0; i < steps; i++) {
        struct load_outcome *outcome = &f->outcomes[i];
        outcome->step.users = 10;
        outcome->began_unix_ns = INT64_C(1795248000) * 1000000000 + (int64_t)i * 10000000000;
        outcome->measured_ns = UINT64_C(10) * 1000000000;
        outcome->second_count = 10;
        outcome->seconds = calloc(10, sizeof(*outcome->seconds));
        CHECK(outcome->seconds);
        CHECK(load_durations_init(&outcome->handshake) == 0);
#define LOAD_DURATIONS(name) CHECK(load_durations_init(&outcome->name) == 0);
#include "load/counts.def"
#undef LOAD_DURATIONS
    }
}

static inline void fixture_done(struct fixture *f)
{
    for (size_t i = 0; i < f->run.outcome_count; i++) {
#define LOAD_DURATIONS(name) load_durations_done(&f->outcomes[i].name);
#include "load/counts.def"
#undef LOAD_DURATIONS
        load_durations_done(&f->outcomes[i].handshake);
        free(f->outcomes[i].seconds);
    }
}

/* Counts one whole answer, of a user that then thinks for 8 ms and wakes 20 us late. */
static inline void fixture_answer(struct load_outcome *outcome, uint64_t response_ns)
{
    load_durations_add(&outcome->response, response_ns);
    load_durations_add(&outcome->first_byte, response_ns / 2);
    load_durations_add(&outcome->lag, 20000);
    outcome->requests++;
    outcome->seconds[outcome->answers % outcome->second_count].answers++;
    outcome->seconds[outcome->answers % outcome->second_count].by_class[1]++;
    outcome->answers++;
    outcome->status[200]++;
    outcome->received_bytes += 500;
    outcome->body_bytes += 308;
    outcome->sent_bytes += 80;
    outcome->thought_ns += 8e6;
    outcome->user_ns += 8e6 + 20e3 + (double)response_ns;
}

/* 40,000 answers of 1 to 3 ms each. The number of users is N = X(R + Z). An answer takes 50 us of
 * CPU time of the server, and 10 us of the generator. */
static inline void fixture_fill(struct load_outcome *outcome, uint64_t seed)
{
    uint64_t state = seed;
    for (unsigned i = 0; i < 40000; i++)
        fixture_answer(outcome, 1000000 + fixture_random(&state) % 2000000);
    outcome->step.users = (unsigned)(outcome->user_ns / (double)outcome->measured_ns + 0.5);
    outcome->connects = outcome->step.users;
    outcome->longest_gap_ns = 3000000;
    outcome->generator_user_ns = 100000000;
    outcome->generator_system_ns = 300000000;
    outcome->busiest_thread_ns = 390000000;
    outcome->server_user_ns = 500000000;
    outcome->server_system_ns = 1500000000;
}

/* Makes a plan of HTTP/2, and counts frames. */
static inline void fixture_add_http2(struct fixture *f, size_t step, uint64_t count)
{
    f->plan.http2 = true;
    f->plan.pipeline = 16;
#define LOAD_HTTP2_COUNT(name, how) f->outcomes[step].name += count++;
#include "load/counts.def"
#undef LOAD_HTTP2_COUNT
}

/* Adds 300 handshakes of 1 to 4 ms, a third of them full, and the answers that came by TLS. */
static inline void fixture_add_tls(struct fixture *f, size_t step, uint64_t seed)
{
    struct load_outcome *outcome = &f->outcomes[step];
    uint64_t state = seed;
    f->target.tls = true;
    f->plan.tls = LOAD_TLS_RESUME;
    for (unsigned i = 0; i < 300; i++)
        load_durations_add(&outcome->handshake, 1000000 + fixture_random(&state) % 3000000);
    outcome->handshakes_full += 100;
    outcome->handshakes_resumed += 200;
    unsigned at =
        load_result_agreed(outcome->agreed, "TLSv1.3", "TLS_AES_128_GCM_SHA256", "x25519");
    outcome->agreed[at].answers += outcome->answers;
}
