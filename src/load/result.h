/* SPDX-License-Identifier: MIT
 *
 * What a run has measured. The engine fills it, and every form of the report is made from it, so
 * that no two forms can differ.
 *
 * All times are nanoseconds.
 */
#pragma once

#include "load/durations.h"
#include "load/plan.h"

#include <stddef.h>

/* The errors of a request, by phase. LOAD_ERROR(name, phase, sentence) */
#define LOAD_ERRORS(LOAD_ERROR) \
    LOAD_ERROR(connect_refused, connect, "The server refused the connection.") \
    LOAD_ERROR(connect_unreachable, connect, "The network has no route to the server.") \
    LOAD_ERROR(connect_timeout, connect, "The connection took longer than --connect-timeout.") \
    LOAD_ERROR(connect_other, connect, "The connection could not be made.") \
    LOAD_ERROR(tls_certificate, tls, "The server's certificate is not trusted.") \
    LOAD_ERROR(tls_handshake, tls, "The TLS handshake failed.") \
    LOAD_ERROR(tls_closed, tls, "The server closed the connection during the TLS handshake.") \
    LOAD_ERROR(tls_timeout, tls, "The TLS handshake was not complete within --connect-timeout.") \
    LOAD_ERROR(tls_no_http2, tls, "The server chose another protocol than HTTP/2 by ALPN.") \
    LOAD_ERROR(no_descriptor, generator, "This process may open no more descriptors.") \
    LOAD_ERROR(no_port, generator, "This address has no local port left to connect from.") \
    LOAD_ERROR(send_reset, send, "The connection broke while a request was sent.") \
    LOAD_ERROR(first_byte_timeout, response, "No first byte came within --first-byte-timeout.") \
    LOAD_ERROR(response_timeout, response, "No whole answer came within --response-timeout.") \
    LOAD_ERROR(closed_before, response, "The server closed a new connection without an answer.") \
    LOAD_ERROR(reset_before, response, "The connection was reset before an answer.") \
    LOAD_ERROR(closed_amid, response, "The connection was closed in the middle of an answer.") \
    LOAD_ERROR(reset_amid, response, "The connection was reset in the middle of an answer.") \
    LOAD_ERROR(tls_broken, response, "The server sent a TLS alert, or an unreadable record.") \
    LOAD_ERROR(tls_truncated, response, "A body without a length ended without close_notify.") \
    LOAD_ERROR(no_http, response, "The answer is not of the requested version of HTTP.") \
    LOAD_ERROR(bad_framing, response, "The length of the answer is contradictory or unreadable.") \
    LOAD_ERROR(bad_http2, response, "The server broke a rule of HTTP/2.") \
    LOAD_ERROR(stream_reset, response, "The server reset the stream of the request.") \
    LOAD_ERROR(stream_refused, response, "The server refused the stream of the request twice.") \
    LOAD_ERROR(goaway, response, "The server ended the connection with GOAWAY.") \
    LOAD_ERROR(unexpected, response, "Bytes arrived that belong to no answer.") \
    LOAD_ERROR(wrong_length, verify, "The body has another length than the first body.") \
    LOAD_ERROR(wrong_body, verify, "The body differs from the first body.")

enum load_error {
#define LOAD_ERROR(name, phase, sentence) LOAD_##name,
    LOAD_ERRORS(LOAD_ERROR)
#undef LOAD_ERROR
        LOAD_ERROR_COUNT
};

enum { LOAD_STATUS_MAX = 600 };

/* The durations of one second are accurate to 0.8 %, since there may be many seconds. Their
 * buckets have this many bits, and are those of an HdrHistogram of 2 digits from 1 ns to 1 h. */
enum { LOAD_SECOND_BITS = 7, LOAD_SECOND_BUCKETS = 4562 };

/* One second of a run: the answers that ended in it. */
struct load_second {
    uint64_t answers, errors, body_bytes;
    uint64_t by_class[5];
    uint64_t connects;
    uint64_t p50_ns, p90_ns, p99_ns, most_ns; /* of the responses that ended in it */
    char *hdr; /* all response times, encoded by load/hdr.h; NULL: none, or not known */
};

/* A protocol, cipher and group of TLS on which a server and the generator have agreed, and the
 * number of answers that came so. A table has LOAD_AGREED_MAX of them. Answers of any further
 * agreement are not counted here. */
enum { LOAD_AGREED_MAX = 8 };
struct load_agreed {
    char protocol[12], cipher[48], group[24]; /* as OpenSSL names them; protocol "": not used */
    uint64_t answers;
};

/* One step, without its warm-up. */
struct load_outcome {
    struct load_step step; /* of a shard: its own part */
    bool interrupted;      /* it ended early, by a signal */
    int64_t began_unix_ns;
    uint64_t measured_ns;    /* the time that rates are divided by */
    uint64_t requests;       /* started in the measured time */
    uint64_t answers;        /* whole ones, of any status */
    uint64_t answers_reused; /* on a connection that had an answer before */
    uint64_t reopened;       /* requests sent again, as the server had closed their connection */
    uint64_t redirects;      /* 3xx, not followed */
    uint64_t status[LOAD_STATUS_MAX];
    uint64_t error[LOAD_ERROR_COUNT];
    uint64_t connects;
    uint64_t received_bytes, sent_bytes, body_bytes; /* received: of answers, heads and bodies */
    struct load_durations response; /* from the first byte given to the kernel to the last byte of
                                       the answer */
    struct load_durations intended; /* the same, from the time it was due; paced and open loop */
    struct load_durations connect;
    struct load_durations first_byte;
    struct load_durations handshake; /* of TLS, from the end of connecting; 0 without TLS */
    uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
    uint64_t tickets_refused; /* full handshakes although a ticket was offered */
    struct load_agreed agreed[LOAD_AGREED_MAX];
    uint64_t goaways, resets, pings, settings_changes; /* frames of HTTP/2; 0 with HTTP/1.1 */
    uint64_t unprocessed;     /* requests sent again, as the server had not processed them */
    uint64_t streams_missing; /* of --pipeline: the most that a connection's server did not allow */
    struct load_durations lag; /* lateness of the generator: requests, timers */
    uint64_t connecting_ns; /* sum of the times that users waited for a connection before a request,
                            with its TLS handshake */
    uint64_t closing_ns;    /* and, after an answer, for a connection to be closed */
    double thought_ns;      /* sum of the think times drawn, for the counted answers */
    double user_ns;         /* users that could send, times time: the N of Little's law */
    uint64_t longest_gap_ns;  /* time without an answer to any user, while one was awaited */
    uint64_t unfinished;      /* requests under way at the end, also those of the warm-up */
    uint64_t longest_wait_ns; /* of those, until the end */
    uint64_t unsent; /* open loop: requests due in the measured time that were not sent in it */
    uint64_t generator_user_ns, generator_system_ns;
    uint64_t busiest_thread_ns;                /* CPU time of the busiest thread of the generator */
    uint64_t server_user_ns, server_system_ns; /* of server_pid and its children */
    size_t second_count;
    struct load_second *seconds;
};

struct load_run {
    const struct load_plan *plan;
    const char *command_line;
    bool interrupted;       /* by a signal: later steps may be missing, and the last one cut */
    unsigned server_cpus;   /* CPUs that server_pid may run on; 0: not known */
    uint64_t plan_digest;   /* of a run read from a file: load_plan_digest of its plan; else 0 */
    unsigned merged;        /* the number of runs that were merged into this one; 0: none */
    uint64_t start_skew_ns; /* of those: from the earliest start of the first step to the latest */
    size_t outcome_count;
    struct load_outcome *outcomes;
};

/* ---- names, in messages and in JSON ---- */

/* The version of the JSON form. It rises when a name goes or changes its meaning. */
enum { LOAD_SCHEMA = 1 };

enum { LOAD_LOOPS = 3, LOAD_THINKS = 3, LOAD_VERIFIES = 3, LOAD_SESSIONS = 3, LOAD_PROTOCOLS = 2 };

extern const char *const load_result_loops[LOAD_LOOPS];
extern const char *const load_result_thinks[LOAD_THINKS];
extern const char *const load_result_verifies[LOAD_VERIFIES];
extern const char *const load_result_sessions[LOAD_SESSIONS];
extern const char *const load_result_protocols[LOAD_PROTOCOLS]; /* by load_plan.http2 */

struct load_result_error {
    const char *name, *phase, *sentence;
};
extern const struct load_result_error load_result_errors[LOAD_ERROR_COUNT];

/* ---- a second ---- */

/* Fills in `second` what follows from its buckets, LOAD_SECOND_BUCKETS of them, and its counts.
 * 0 or -ENOMEM; end with load_result_free_second. */
MUST_USE int load_result_settle_second(struct load_second *second, const uint64_t *bucket);
void load_result_free_second(struct load_second *second);

/* Adds the counts and the greatest duration, without the other durations. */
void load_result_count_second(struct load_second *to, const struct load_second *from);

/* Adds all of it. Without the durations of one second, the sum has no percentiles. 0 or -errno. */
MUST_USE int load_result_add_second(struct load_second *to, const struct load_second *from);

/* ---- an outcome ---- */

/* Sets all to zero, with empty durations. 0 or -ENOMEM. */
MUST_USE int load_result_init_outcome(struct load_outcome *outcome);
void load_result_free_outcome(struct load_outcome *outcome);

/* Adds the counts and durations of an outcome of the same time. Step, start and seconds stay. */
void load_result_add_outcome(struct load_outcome *to, const struct load_outcome *from);

/* The place of an agreement in a table of LOAD_AGREED_MAX, which gets it if it is new. Long names
 * are cut. LOAD_AGREED_MAX: the table is full. */
unsigned load_result_agreed(struct load_agreed *table, const char *protocol, const char *cipher,
                            const char *group);

/* Adds the agreements of one table to another. A place without answers counts as empty. */
void load_result_add_agreed(struct load_agreed *to, const struct load_agreed *from);
