/* SPDX-License-Identifier: MIT
 *
 * What a load is to be: everything that a run needs to know, checked, before its
 * first connection. Pure data; load/parse.c makes it from the words on the
 * command line.
 */
#pragma once

#include "base/check.h"

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
    LOAD_PIPELINE_MAX = 64
};

/* How long a user thinks between an answer and the next request. */
enum load_think_kind { LOAD_THINK_CONSTANT, LOAD_THINK_EXPONENTIAL, LOAD_THINK_UNIFORM };
struct load_think {
    enum load_think_kind kind;
    uint64_t low_ns, high_ns; /* constant, exponential: both the mean */
};

/* When requests begin. */
enum load_loop {
    LOAD_CLOSED, /* when a user has thought */
    LOAD_PACED,  /* each user once in `pace_ns`, late ones at once */
    LOAD_OPEN    /* `rate` a second of all users together, whoever is free */
};

/* One URL. */
struct load_target {
    const char *host; /* for Host and SNI, as written, with its port */
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned origin;  /* the first target with this address: they share connections */
    const char *path; /* origin-form */
    double weight;
    const char *request; /* the bytes of one request, ready to send */
    size_t request_len;
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
    struct load_step *steps; /* at least one; of a shard: its own part */
    size_t step_count;
    struct load_think think;
    enum load_loop loop;
    bool poisson; /* of LOAD_OPEN; else evenly spaced */
    uint64_t pace_ns;
    uint64_t warmup_ns, duration_ns; /* of each step; duration 0: by `requests` */
    uint64_t requests;               /* of each step and of all shards together; 0: by duration */
    bool keep_alive;
    unsigned pipeline; /* requests under way on a connection, at least 1 */
    bool head;         /* answers have no body: method HEAD */
    uint64_t connect_timeout_ns, first_byte_timeout_ns, response_timeout_ns; /* 0: none */
    enum load_verify { LOAD_VERIFY_NOT, LOAD_VERIFY_LENGTH, LOAD_VERIFY_HASH } verify;
    struct sockaddr_storage sources[LOAD_SOURCES_MAX]; /* local addresses, in turn */
    unsigned source_count;
    unsigned threads;           /* of the generator, at least 1 */
    int cpus[LOAD_THREADS_MAX]; /* thread i runs on cpus[i % cpu_count] */
    unsigned cpu_count;         /* 0: wherever */
    uint64_t seed;
    unsigned shard, shards;   /* this one of how many; 0 of 1 */
    int64_t start_at_unix_ns; /* 0: now */
    pid_t server_pid;         /* whose CPU is told; 0: none */
};
