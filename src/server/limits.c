/* SPDX-License-Identifier: MIT */
#include "server/limits.h"

#include "server/networks.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

static uint64_t interval_ns(uint64_t per_second)
{
    return per_second > 0 ? DURATION_SECOND / per_second : 0;
}

static bool has_limited_paths(const struct config *config)
{
    for (unsigned i = 0; i < config->site_count; i++)
        for (unsigned path = 0; path < config->sites[i].path_count; path++)
            if (config->sites[i].paths[path].path_request_rate > 0)
                return true;
    return false;
}

int server_limits_open(struct server_limits *limits, const struct config *config, unsigned workers)
{
    *limits = (struct server_limits){
        .limits = {
            .workers = workers,
            .connections = (unsigned)config->address_connections,
            .connection_interval_ns = interval_ns(config->address_connection_rate),
            .request_interval_ns = interval_ns(config->address_request_rate),
        },
    };
    struct session_limits *set = &limits->limits;
    if (set->connections == 0 && set->connection_interval_ns == 0 &&
        set->request_interval_ns == 0 && !has_limited_paths(config))
        return 0;
    int rc = server_networks_open(&set->exempt, config->address_exempt);
    if (rc < 0)
        return rc;
    if (getrandom(&set->key, sizeof(set->key), 0) != sizeof(set->key))
        return -errno;
    limits->bytes = session_limits_bytes(workers);
    void *memory =
        mmap(NULL, limits->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    set->memory = memory;
    return 0;
}

void server_limits_close(struct server_limits *limits)
{
    if (limits->limits.memory)
        (void)munmap(limits->limits.memory, limits->bytes); /* fails for bad arguments only */
    server_networks_close(&limits->limits.exempt);
    *limits = (struct server_limits){ 0 };
}

const struct session_limits *server_limits_join(struct server_limits *limits, unsigned worker)
{
    if (!limits->limits.memory)
        return NULL;
    limits->limits.worker = worker;
    session_limits_clear(&limits->limits);
    return &limits->limits;
}
