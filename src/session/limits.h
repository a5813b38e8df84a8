/* SPDX-License-Identifier: MIT
 *
 * Limits for each client address: connections at a time, new connections and requests per second,
 * and requests for the paths of a rule. All workers of a configuration share them. One address is
 * an IPv4 address, or the first 64 bits of an IPv6 address, which one customer usually has for all
 * devices.
 *
 * Nothing is stored about an address. A keyed hash gives it one place in each of two rows of
 * numbers, and the smaller of its two numbers applies (a count-min sketch). So memory is bounded,
 * nothing is evicted, and no lock is needed. Two addresses that share both places share a limit:
 * among 10,000 addresses that connect at the same time, that happens to about 1 in 20,000.
 * A client cannot choose its places, because the key is secret.
 *
 * Connections are counted by each worker apart. A successor of a worker that died begins with
 * zeros, so no count is lost or left over.
 *
 * Requests for the paths of a rule are counted in session/meter.h: a rate of a rule may be a few an
 * hour, and two rules may have very different ones.
 */
#pragma once

#include "base/check.h"
#include "peer/address.h"
#include "session/meter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session_peer;

enum {
    SESSION_LIMITS_ROWS = 2,
    SESSION_LIMITS_PLACES = 1 << 15,
    /* Unused connections and requests are saved for this long. A page with many pictures comes as
     * a burst. */
    SESSION_LIMITS_SAVED_S = 10
};

/* The connections of one worker, by place. Its threads write. With `fork` its children write too,
 * and they may outlive it. They then belong to an earlier epoch, and count no more. */
struct session_limits_open {
    _Atomic uint32_t epoch;
    _Atomic uint32_t at[SESSION_LIMITS_ROWS][SESSION_LIMITS_PLACES];
};

/* When a place has used up what it may, in nanoseconds of the monotonic clock. All workers
 * write. */
struct session_limits_used {
    _Atomic uint64_t until_ns[SESSION_LIMITS_ROWS][SESSION_LIMITS_PLACES];
};

/* All workers share this. Zeroed memory is a valid start. */
struct session_limits_memory {
    struct session_limits_used connections, requests;
    struct session_meter paths;        /* requests, of an address under a rule of a site */
    struct session_limits_open open[]; /* one for each worker */
};

/* Filled by the server before any thread starts. Then nothing changes but the memory. */
struct session_limits {
    struct session_limits_memory *memory;
    unsigned workers, worker; /* how many, and which this one is */
    uint32_t epoch;           /* of this worker's connections */
    uint64_t key;
    unsigned connections;            /* at a time; 0: no limit */
    uint64_t connection_interval_ns; /* between new connections, on average; 0: no limit */
    uint64_t request_interval_ns;    /* the same for requests */
    struct peer_networks exempt;
};

/* The bytes of session_limits_memory for this many workers. */
size_t session_limits_bytes(unsigned workers);

/* A worker begins, and with it an epoch: no connection is open in it. */
void session_limits_clear(struct session_limits *limits);

/* Finds the places of an address, and sets peer->place. False: it is exempt, or a Unix socket. */
MUST_USE bool session_limits_locate(const struct session_limits *limits, struct session_peer *peer);

/* Whether the address may have one connection more. True: the connection is counted, and
 * peer->limited and peer->place are set. An exempt address and a Unix socket are not limited. */
MUST_USE bool session_limits_admit(const struct session_limits *limits, struct session_peer *peer,
                                   uint64_t now_ns);

/* The connection has ended. */
void session_limits_release(const struct session_limits *limits, const struct session_peer *peer);

/* Whether the address may have one request more now. True: it is counted. */
MUST_USE bool session_limits_take_request(const struct session_limits *limits,
                                          const struct session_peer *peer, uint64_t now_ns);

/* The same for the paths of a rule: `burst` requests at once, and then one in each interval, which
 * is not 0. `rule` is the number of the rule, the same in all workers. Returns 0 if the request is
 * counted, or the time after which the address may send the next one. */
MUST_USE uint64_t session_limits_take_path(const struct session_limits *limits,
                                           const struct session_peer *peer, uint32_t rule,
                                           uint64_t interval_ns, uint64_t burst, uint64_t now_ns);
