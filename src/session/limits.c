/* SPDX-License-Identifier: MIT
 *
 * A rate is kept as one time for each place: until when the place has used up its share. Each use
 * moves the time on by an interval. The place may be ahead of the clock by SESSION_LIMITS_SAVED_S
 * (the generic cell rate algorithm: a bucket of tokens in one number).
 */
#include "session/limits.h"

#include "base/duration.h"
#include "base/hash.h"
#include "session/session.h"

#include <string.h>

enum { IPV4_BYTES = 4, IPV6_NETWORK_BYTES = 8 };

static bool is_exempt(const struct session_limits *limits, const struct session_peer *peer)
{
    return peer->family == 0 || peer_networks_have(&limits->exempt, peer->family, peer->address);
}

/* ---- rates ---- */

static bool may_use(const struct session_limits_used *used, const struct session_peer *peer,
                    uint64_t limit_ns)
{
    for (unsigned row = 0; row < SESSION_LIMITS_ROWS; row++)
        if (atomic_load_explicit(&used->until_ns[row][peer->place[row]], memory_order_relaxed) <=
            limit_ns)
            return true;
    return false;
}

static void use_once(struct session_limits_used *used, const struct session_peer *peer,
                     uint64_t interval_ns, uint64_t now_ns)
{
    for (unsigned row = 0; row < SESSION_LIMITS_ROWS; row++) {
        _Atomic uint64_t *until = &used->until_ns[row][peer->place[row]];
        uint64_t old = atomic_load_explicit(until, memory_order_relaxed), moved;
        do
            moved = (old > now_ns ? old : now_ns) + interval_ns;
        while (!atomic_compare_exchange_weak_explicit(until, &old, moved, memory_order_relaxed,
                                                      memory_order_relaxed));
    }
}

/* Two threads that ask at the same time may both get the last use. The next ones wait for it. */
static bool take(struct session_limits_used *used, const struct session_peer *peer,
                 uint64_t interval_ns, uint64_t now_ns)
{
    uint64_t saved_ns = SESSION_LIMITS_SAVED_S * DURATION_SECOND;
    uint64_t ahead_ns = interval_ns < saved_ns ? saved_ns - interval_ns : 0;
    if (interval_ns == 0)
        return true;
    if (!may_use(used, peer, now_ns + ahead_ns))
        return false;
    use_once(used, peer, interval_ns, now_ns);
    return true;
}

bool session_limits_take_request(const struct session_limits *limits,
                                 const struct session_peer *peer, uint64_t now_ns)
{
    return !peer->limited ||
           take(&limits->memory->requests, peer, limits->request_interval_ns, now_ns);
}

uint64_t session_limits_take_path(const struct session_limits *limits,
                                  const struct session_peer *peer, uint32_t rule,
                                  uint64_t interval_ns, uint64_t burst, uint64_t now_ns)
{
    const uint32_t key[] = { rule, peer->place[0], peer->place[1] };
    if (!peer->limited)
        return 0;
    const uint64_t hash = hash_bytes(span_of((const char *)key, sizeof(key)), limits->key);
    return session_meter_take(&limits->memory->paths, hash, interval_ns, burst, now_ns);
}

/* ---- connections ---- */

size_t session_limits_bytes(unsigned workers)
{
    return sizeof(struct session_limits_memory) + workers * sizeof(struct session_limits_open);
}

void session_limits_clear(struct session_limits *limits)
{
    struct session_limits_open *own = &limits->memory->open[limits->worker];
    limits->epoch = atomic_fetch_add(&own->epoch, 1) + 1;
    for (unsigned row = 0; row < SESSION_LIMITS_ROWS; row++)
        for (unsigned i = 0; i < SESSION_LIMITS_PLACES; i++)
            atomic_store_explicit(&own->at[row][i], 0, memory_order_relaxed);
}

/* Where this process counts its connections. NULL: the worker has died, and its successor counts
 * from zero. */
static struct session_limits_open *own_connections(const struct session_limits *limits)
{
    struct session_limits_open *own = &limits->memory->open[limits->worker];
    return atomic_load(&own->epoch) == limits->epoch ? own : NULL;
}

/* The connections of the address in all workers. Never too few. */
static uint64_t open_connections(const struct session_limits *limits,
                                 const struct session_peer *peer)
{
    uint64_t least = UINT64_MAX;
    for (unsigned row = 0; row < SESSION_LIMITS_ROWS; row++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < limits->workers; i++)
            sum += atomic_load_explicit(&limits->memory->open[i].at[row][peer->place[row]],
                                        memory_order_relaxed);
        least = sum < least ? sum : least;
    }
    return least;
}

bool session_limits_locate(const struct session_limits *limits, struct session_peer *peer)
{
    if (is_exempt(limits, peer))
        return false;
    size_t len = peer->family == 4 ? IPV4_BYTES : IPV6_NETWORK_BYTES;
    uint64_t hash = hash_bytes(span_of((const char *)peer->address, len), limits->key);
    for (unsigned row = 0; row < SESSION_LIMITS_ROWS; row++)
        peer->place[row] = (uint16_t)(hash >> (16 * row) & (SESSION_LIMITS_PLACES - 1));
    return true;
}

bool session_limits_admit(const struct session_limits *limits, struct session_peer *peer,
                          uint64_t now_ns)
{
    peer->limited = session_limits_locate(limits, peer);
    if (!peer->limited)
        return true;
    bool admitted =
        (limits->connections == 0 || open_connections(limits, peer) < limits->connections) &&
        take(&limits->memory->connections, peer, limits->connection_interval_ns, now_ns);
    struct session_limits_open *own = own_connections(limits);
    peer->limited = admitted && own;
    for (unsigned row = 0; peer->limited && row < SESSION_LIMITS_ROWS; row++)
        atomic_fetch_add_explicit(&own->at[row][peer->place[row]], 1, memory_order_relaxed);
    return admitted;
}

void session_limits_release(const struct session_limits *limits, const struct session_peer *peer)
{
    struct session_limits_open *own = peer->limited ? own_connections(limits) : NULL;
    for (unsigned row = 0; own && row < SESSION_LIMITS_ROWS; row++)
        atomic_fetch_sub_explicit(&own->at[row][peer->place[row]], 1, memory_order_relaxed);
}
