/* SPDX-License-Identifier: MIT
 *
 * Derives the results of a step from its counts, and judges whether they can be trusted. Each
 * step is checked against the laws that every closed system obeys, and against the capacity that
 * the generator had left. A step that fails describes something other than the server. Pure.
 */
#pragma once

#include "load/slo.h"

/* ---- what follows from the counts ---- */

struct load_derived {
    double seconds;
    uint64_t errors;   /* of all kinds */
    uint64_t refusals; /* answers of status 400 and above */
    uint64_t ended;    /* requests that have ended, with an answer or an error */
    uint64_t failed;   /* of those: errors and refusals */
    double failed_share;
    double answers_per_s;    /* X: whole answers, of any status */
    double throughput_per_s; /* average throughput: successful requests per second */
    double response_ns;      /* average response time, R: of whole answers */
    double think_ns;         /* think time, Z: as drawn, per answer */
    double late_ns;          /* lateness of the generator per answer: users thought this longer */
    double connect_ns;       /* C: time to connect before a request, per answer */
    double close_ns;         /* time to close the connection afterwards, per answer */
    double users;            /* N: users that could send, on average */
    double cycle_ns;         /* N/X: from one answer of a user to its next */
    double hidden_ns;        /* the rest of the cycle, which the generator itself added */
    double hidden_share;     /* of the cycle */
    bool little;             /* whether Little's law applies: closed loop, one request at a time */

    double generator_cores;   /* CPUs that the generator kept busy */
    double busiest_share;     /* of one CPU, used by its busiest thread */
    double generator_cost_ns; /* CPU time per answer */

    bool server;           /* whether the server's CPU time is known; else all of these are 0 */
    double server_cores;   /* CPUs that the server kept busy: utilisation X D */
    double demand_ns;      /* service demand, D: its CPU time per answer */
    double one_core_per_s; /* 1/D: answers per second of one busy core */
    double saturation_one_core; /* saturation point of one core, N*: (D + Z)/D users */
    double saturation;          /* of all m cores: m (D + Z)/D users; 0: m is not known */
};

struct load_derived load_trust_derive(const struct load_run *run,
                                      const struct load_outcome *outcome);

/* The durations that objectives are about. For a closed loop these are the response times. For a
 * paced or open loop they count from the time when the request was due. Lent for as long as the
 * outcome. */
const struct load_durations *load_trust_response(const struct load_run *run,
                                                 const struct load_outcome *outcome);

/* ---- doubts ---- */

/* LOAD_DOUBT(name, whether it makes the step invalid, what happened, what to do) */
#define LOAD_DOUBTS(LOAD_DOUBT) \
    LOAD_DOUBT(no_answers, true, "No request was answered.", \
               "See the errors; check that the server runs and has this address.") \
    LOAD_DOUBT(no_answer_yet, true, "No request was answered.", \
               "Check that the server answers, or measure for longer than an answer takes.") \
    LOAD_DOUBT(no_request, true, "No request was sent.", \
               "Measure for longer, or with less time between requests.") \
    LOAD_DOUBT(no_success, true, "No request succeeded.", \
               "Check the URL and the method: every answer has a status of 400 or above.") \
    LOAD_DOUBT(failed, true, "Requests failed, so the result describes only the others.", \
               "See the errors and the answers of status 400 and above; or say with --slo " \
               "'errors<5%' how many may fail.") \
    LOAD_DOUBT(generator_cpu, true, "The generator was short of CPU time.", \
               "Use more --threads, give it CPUs of its own (--cpus), or more machines.") \
    LOAD_DOUBT(lag, true, "The generator sent requests late.", \
               "Use more --threads, CPUs of its own (--cpus), or less load.") \
    LOAD_DOUBT(little, true, "The generator lost time that no part of a cycle explains.", \
               "Give the generator CPUs of its own (--cpus), or measure for longer.") \
    LOAD_DOUBT(no_descriptor, true, "The generator ran out of descriptors.", \
               "Raise the limit of open files (ulimit -n).") \
    LOAD_DOUBT(no_port, true, "The generator ran out of local ports.", \
               "Use keep-alive, more local addresses (--source), or less load.") \
    LOAD_DOUBT( \
        unsent, true, \
        "The requested rate was not reached: too few users, or the server is at its limit.", \
        "Use more --users, or a lower --rate.") \
    LOAD_DOUBT(backlog, true, \
               "More requests were sent than the rate gives: the warm-up left some.", \
               "Use a longer --warmup, or more --users.") \
    LOAD_DOUBT(skew, true, "The merged runs did not start together.", \
               "Set the machines' clocks, and start later with --start-at.") \
    LOAD_DOUBT(cut, true, "A merged run was interrupted.", \
               "Measure again; or merge only runs that measured for the same time.") \
    LOAD_DOUBT(shards, true, "Some shards are missing.", \
               "Merge all shards; if one has failed, measure again.") \
    LOAD_DOUBT(few_for_slo, true, "The answers are too few for an objective.", \
               "Measure for longer.") \
    LOAD_DOUBT(some_failed, false, "Some requests failed.", \
               "See the errors and the answers of status 400 and above.") \
    LOAD_DOUBT(unfinished, false, "Some requests wait for longer than any answer took.", \
               "Use a --response-timeout below the measured time: then they are errors.") \
    LOAD_DOUBT(unexpected, false, "The server sent bytes that belong to no answer.", \
               "Check that Content-Length is the length of each body.") \
    LOAD_DOUBT(few_answers, false, "The answers are too few for the highest percentiles.", \
               "Measure for longer to have them all.") \
    LOAD_DOUBT(tickets_refused, false, "The server did not resume TLS sessions.", \
               "Check that all its processes share the keys of tickets, and how long tickets " \
               "last; or measure with --tls full.") \
    LOAD_DOUBT( \
        streams, false, "The server allows fewer streams than --pipeline.", \
        "Raise its limit of concurrent streams, or use a lower --pipeline and more --users.") \
    LOAD_DOUBT(gap, false, "For some time the server answered no request.", \
               "A closed loop sends nothing meanwhile; --rate or --pace shows the requests that " \
               "would have waited.")

enum load_doubt {
#define LOAD_DOUBT(name, invalid, cause, cure) LOAD_DOUBT_##name,
    LOAD_DOUBTS(LOAD_DOUBT)
#undef LOAD_DOUBT
        LOAD_DOUBT_COUNT
};

enum { LOAD_REASON_MAX = 160 };

/* The judgement of one step. */
struct load_verdict {
    bool invalid;
    bool doubted[LOAD_DOUBT_COUNT];
    char reason[LOAD_DOUBT_COUNT][LOAD_REASON_MAX]; /* with the numbers; of the doubts that apply */
};

struct load_doubt_about {
    const char *name;
    bool invalid; /* else the step stays valid */
    const char *cause, *cure;
};
extern const struct load_doubt_about load_doubts[LOAD_DOUBT_COUNT];

/* `slos` may be empty. */
void load_trust_judge(const struct load_run *run, const struct load_outcome *outcome,
                      const struct load_slos *slos, struct load_verdict *ret_verdict);

/* Whether `count` durations support the percentile `part`: with 95 % probability at least one of
 * them lies above it. */
bool load_trust_carries(uint64_t count, double part);
