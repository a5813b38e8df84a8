/* SPDX-License-Identifier: MIT
 *
 * What a run has measured. The engine fills it, and everything that is shown or
 * written is made from it, so that no two forms of a result can differ.
 *
 * All times are nanoseconds.
 */
#pragma once

#include "load/durations.h"
#include "load/plan.h"

#include <stddef.h>

/* What can go wrong with a request, by phase. LOAD_ERROR(name, phase, sentence) */
#define LOAD_ERRORS(LOAD_ERROR) \
    LOAD_ERROR(connect_refused, connect, "The server refused the connection.") \
    LOAD_ERROR(connect_unreachable, connect, "There is no way to the server.") \
    LOAD_ERROR(connect_timeout, connect, "No connection within --connect-timeout.") \
    LOAD_ERROR(connect_other, connect, "The connection could not be made.") \
    LOAD_ERROR(no_descriptor, generator, "This process may open no more descriptors.") \
    LOAD_ERROR(no_port, generator, "This address has no local port left to connect from.") \
    LOAD_ERROR(send_reset, send, "The connection broke while a request was sent.") \
    LOAD_ERROR(first_byte_timeout, response, "No first byte within --first-byte-timeout.") \
    LOAD_ERROR(response_timeout, response, "Not answered whole within --response-timeout.") \
    LOAD_ERROR(closed_before, response, "Closed without an answer, on a fresh connection.") \
    LOAD_ERROR(reset_before, response, "Reset before an answer.") \
    LOAD_ERROR(closed_amid, response, "Closed in the middle of an answer.") \
    LOAD_ERROR(reset_amid, response, "Reset in the middle of an answer.") \
    LOAD_ERROR(no_http, response, "What came is not HTTP/1.") \
    LOAD_ERROR(bad_framing, response, "Lengths that contradict each other or cannot be read.") \
    LOAD_ERROR(unexpected, response, "Bytes that belong to no answer.") \
    LOAD_ERROR(wrong_length, verify, "A body of another length than the first one had.") \
    LOAD_ERROR(wrong_body, verify, "Another body than the first one.")

enum load_error {
#define LOAD_ERROR(name, phase, sentence) LOAD_##name,
    LOAD_ERRORS(LOAD_ERROR)
#undef LOAD_ERROR
        LOAD_ERROR_COUNT
};

enum { LOAD_STATUS_MAX = 600 };

/* Durations of one second are told to 0.8 %, as there may be many seconds: in buckets of so many
 * bits, which are those of an HdrHistogram of 2 digits from 1 ns to 1 h. */
enum { LOAD_SECOND_BITS = 7, LOAD_SECOND_BUCKETS = 4562 };

/* One second of a run, by when answers ended. */
struct load_second {
    uint64_t answers, errors, body_bytes;
    uint64_t by_class[5];
    uint64_t connects;
    uint64_t p50_ns, p90_ns, p99_ns, most_ns; /* of the responses that ended in it */
    char *hdr; /* all of them, as load/hdr.h has it; NULL: there are none, or they are not known */
};

/* One level of load, held. Warm-up is not in it. */
struct load_outcome {
    struct load_step step; /* of a shard: its own part */
    int64_t began_unix_ns;
    uint64_t measured_ns;    /* what rates divide by */
    uint64_t requests;       /* begun within it */
    uint64_t answers;        /* whole ones, whatever the status */
    uint64_t answers_reused; /* on a connection that had been answered before */
    uint64_t reopened;       /* requests asked again as the server had closed an idle connection */
    uint64_t redirects;      /* 3xx, not followed */
    uint64_t status[LOAD_STATUS_MAX];
    uint64_t error[LOAD_ERROR_COUNT];
    uint64_t connects;
    uint64_t received_bytes, sent_bytes, body_bytes; /* received: of answers, heads and bodies */
    struct load_durations response; /* from the first byte handed to the kernel, to the last byte of
                                       the answer */
    struct load_durations intended; /* the same from when it should have begun; paced and open */
    struct load_durations connect;
    struct load_durations first_byte;
    struct load_durations lag; /* how late the generator was with what was due: requests, timers */
    uint64_t connecting_ns;    /* sum of what users waited for a connection before they could ask */
    uint64_t closing_ns;       /* and, once answered, for one that was not kept to be closed */
    double thought_ns;         /* sum of think times drawn, for the answers counted */
    double user_ns;            /* users that could ask, times time: the N of Little's law */
    uint64_t longest_gap_ns;   /* without an answer, all users together, while any was awaited */
    uint64_t unsent;           /* open loop: due, and no user was free at the end */
    uint64_t generator_user_ns, generator_system_ns;
    uint64_t busiest_thread_ns;                /* CPU of the generator's thread that had most */
    uint64_t server_user_ns, server_system_ns; /* of server_pid and its children */
    size_t second_count;
    struct load_second *seconds;
};

struct load_run {
    const struct load_plan *plan;
    const char *command_line;
    bool interrupted;       /* Ctrl-C: what there is */
    unsigned server_cpus;   /* that server_pid may run on; 0: not known */
    uint64_t kin;           /* of a run read from a file: load_kin of its plan; else 0 */
    unsigned merged;        /* runs that this one is merged from; 0: it is none such */
    uint64_t start_skew_ns; /* of those: the first step's earliest beginning to its latest */
    size_t outcome_count;
    struct load_outcome *outcomes;
};
