/* SPDX-License-Identifier: MIT
 *
 * The plan of a load: everything that a run needs to know, checked before its first connection.
 * load/reading.c makes it from the command line.
 */
#pragma once

#include "base/check.h"
#include "load/http2.h"
#include "option/option.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    LOAD_STEPS_MAX = 1000,
    LOAD_TARGETS_MAX = 65536,
    LOAD_SOURCES_MAX = 256,
    LOAD_THREADS_MAX = 256,
    LOAD_USERS_MAX = 10 * 1000 * 1000,
    LOAD_PIPELINE_MAX = 256
};

/* The time between an answer and the next request of a user. */
enum load_think_kind { LOAD_THINK_CONSTANT, LOAD_THINK_EXPONENTIAL, LOAD_THINK_UNIFORM };
struct load_think {
    enum load_think_kind kind;
    uint64_t low_ns, high_ns; /* constant and exponential: both are the mean */
};

/* When requests start. */
enum load_loop {
    LOAD_CLOSED, /* after the think time of a user */
    LOAD_PACED,  /* each user once every `pace_ns`; late ones at once */
    LOAD_OPEN    /* `rate` per second of all users together, by any free user */
};

/* New connections of a load with TLS, after the first one of a user. */
enum load_sessions {
    LOAD_TLS_NONE,   /* no target uses TLS */
    LOAD_TLS_RESUME, /* offer the ticket of the user's last connection, as browsers do */
    LOAD_TLS_FULL    /* make a full handshake */
};

struct tls_client;

/* One URL. */
struct load_target {
    const char *host;   /* for Host, as written, with its port */
    const char *name;   /* of the host, without port and brackets; NULL: a Unix socket */
    const char *socket; /* path of the Unix socket; NULL: TCP */
    bool tls;           /* https */
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned origin;  /* number of the first target with this address, and with TLS this host:
                         both share connections */
    const char *path; /* origin-form */
    double weight;
    const char *request; /* the bytes of one request, ready to send */
    size_t request_len;
    size_t head_len; /* of its head, without the body */
    struct span
        block[LOAD_HTTP2_FORMS]; /* with HTTP/2: its header blocks, by enum http2_client_form */
};

struct load_step {
    unsigned users;
    double rate; /* of LOAD_OPEN, requests a second */
};

struct load_plan {
    struct load_target
        *targets; /* at least one, with cumulative choice made from weights or Zipf */
    size_t target_count;
    double zipf;             /* exponent; 0: by weight */
    struct load_step *steps; /* at least one; only the part of this shard */
    size_t step_count;
    struct load_think think;
    enum load_loop loop;
    bool poisson; /* of LOAD_OPEN; else evenly spaced */
    uint64_t pace_ns;
    uint64_t warmup_ns, duration_ns; /* of each step; duration 0: by `requests` */
    uint64_t requests;               /* of each step and of all shards together; 0: by duration */
    bool keep_alive;
    bool http2;        /* else HTTP/1.1 */
    unsigned pipeline; /* requests under way on one connection, at least 1 */
    bool head;         /* method HEAD: answers have no body */
    struct span data;  /* the body of every request; borrowed */
    uint64_t connect_timeout_ns, first_byte_timeout_ns, response_timeout_ns; /* 0: none */
    enum load_verify { LOAD_VERIFY_NOT, LOAD_VERIFY_LENGTH, LOAD_VERIFY_HASH } verify;
    enum load_sessions tls;
    bool insecure;                                     /* certificates are not verified */
    struct tls_client *client;                         /* of load/reading.h; NULL without TLS */
    struct sockaddr_storage sources[LOAD_SOURCES_MAX]; /* local addresses, in turn */
    unsigned source_count;
    unsigned threads;           /* of the generator, at least 1 */
    int cpus[LOAD_THREADS_MAX]; /* thread i runs on cpus[i % cpu_count] */
    unsigned cpu_count;         /* 0: any CPU */
    bool spin;                  /* polls instead of sleeping */
    bool spin_anyway;           /* even where that takes the server's core */
    uint64_t seed;
    unsigned shard, shards;   /* number of this shard, from 0, and of all shards */
    int64_t start_at_unix_ns; /* 0: now */
    pid_t server_pid;         /* the process whose CPU time is reported; 0: none */
};

/* A number that is the same for all plans that put the same load on the same server, whatever
 * their shard and machine. Results of plans with the same digest can be merged. */
uint64_t load_plan_digest(const struct load_plan *plan);

/* Whether this machine has what the plan needs: its source addresses, the server's process, and a
 * start time that is not over. Makes system calls. */
MUST_USE bool load_plan_check_resources(const struct load_plan *plan,
                                        struct option_refusal *refusal);
