/* SPDX-License-Identifier: MIT
 *
 * What a step's numbers amount to, and whether they can be trusted. Each step is
 * held to the laws that any closed system obeys and to what its generator has left
 * unused; where it fails, the server was not what was measured. Pure.
 */
#pragma once

#include "load/slo.h"

/* ---- what follows from the counts ---- */

struct load_derived {
    double seconds;
    uint64_t errors;         /* requests without a whole answer */
    uint64_t refusals;       /* answers of status 400 and above */
    double failed_share;     /* of requests that ended: errors and refusals */
    double answers_per_s;    /* X: whole answers, whatever the status */
    double throughput_per_s; /* average throughput: requests a second that were served */
    double response_ns;      /* average response time, R: of whole answers */
    double think_ns;         /* Z, for an answer */
    double connect_ns;       /* C: time to connect before asking, for an answer */
    double close_ns;         /* and to close the connection afterwards */
    double users;            /* N: those that could ask, on average */
    double cycle_ns;         /* N/X: from one answer of a user to its next */
    double hidden_ns;        /* what of that none of these is: the generator itself has added it */
    double hidden_share;     /* of the cycle */
    bool little;             /* whether that says anything: closed loop, one request at a time */

    double generator_cores;   /* CPUs that it kept busy */
    double busiest_share;     /* of one CPU, by its busiest thread */
    double generator_cost_ns; /* CPU for an answer */

    bool server;                /* whether the server's CPU was seen; else 0: */
    double server_cores;        /* CPUs that it kept busy: X D */
    double demand_ns;           /* D: its CPU for an answer, the service demand */
    double one_core_per_s;      /* 1/D: what one core can answer */
    double saturation_one_core; /* N*: users that keep one core busy, (D + Z)/D */
    double saturation;          /* the same of all its cores, m (D + Z)/D; 0: m is not known */
};

struct load_derived load_trust_derive(const struct load_run *run,
                                      const struct load_outcome *outcome);

/* The durations that objectives are about: of closed loops those of the responses; of paced and
 * open ones those from when the requests should have begun. Lent for as long as the outcome. */
const struct load_durations *load_trust_response(const struct load_run *run,
                                                 const struct load_outcome *outcome);

/* ---- what speaks against them ---- */

/* LOAD_DOUBT(name, whether it makes the step invalid, what to do about it) */
#define LOAD_DOUBTS(LOAD_DOUBT) \
    LOAD_DOUBT(no_answers, true, "See the errors; is the server there, and is this its address?") \
    LOAD_DOUBT(generator_cpu, true, \
               "Use more --threads, give it CPUs of its own (--cpus), or more machines.") \
    LOAD_DOUBT(lag, true, "Use more --threads, CPUs of its own (--cpus), or ask for less.") \
    LOAD_DOUBT(little, true, \
               "Give the generator CPUs of its own (--cpus), or measure for longer.") \
    LOAD_DOUBT(no_descriptor, true, "Raise the limit of open files (ulimit -n).") \
    LOAD_DOUBT(no_port, true, "Use keep-alive, more local addresses (--source), or ask for less.") \
    LOAD_DOUBT(unsent, true, "Use more --users; or the server is at its limit: ask for less.") \
    LOAD_DOUBT(skew, true, "Set the machines' clocks, and start later with --start-at.") \
    LOAD_DOUBT(shards, true, "Merge all of them; if one has died, measure again.") \
    LOAD_DOUBT(few_for_slo, true, "Measure for longer.") \
    LOAD_DOUBT(few_answers, false, "Measure for longer to have them all.") \
    LOAD_DOUBT( \
        gap, false, \
        "A closed loop asks nothing meanwhile; --rate or --pace shows who would have waited.")

enum load_doubt {
#define LOAD_DOUBT(name, invalid, cure) LOAD_DOUBT_##name,
    LOAD_DOUBTS(LOAD_DOUBT)
#undef LOAD_DOUBT
        LOAD_DOUBT_COUNT
};

enum { LOAD_REASON_MAX = 160 };

/* Of one step. */
struct load_verdict {
    bool invalid;
    bool doubted[LOAD_DOUBT_COUNT];
    char reason[LOAD_DOUBT_COUNT][LOAD_REASON_MAX]; /* with the numbers; of those doubted */
};

struct load_doubt_about {
    const char *name;
    bool invalid; /* else it is told, and the step stands */
    const char *cure;
};
extern const struct load_doubt_about load_doubts[LOAD_DOUBT_COUNT];

/* `slos` may be empty. */
void load_trust_judge(const struct load_run *run, const struct load_outcome *outcome,
                      const struct load_slos *slos, struct load_verdict *ret_verdict);

/* Whether so many durations can tell what `part` of all are at most: at least one is to be
 * expected above it, with 95 %. */
bool load_trust_carries(uint64_t count, double part);
