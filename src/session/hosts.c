/* SPDX-License-Identifier: MIT */
#include "session/hosts.h"

#include "base/hosts.h"
#include "session/thread.h"

#include <stdlib.h>

struct session_hosts {
    const struct session_site *everything; /* for hosts that no name covers; NULL: none */
    struct hosts index;
    struct hosts_slot slots[];
};

struct session_hosts *session_hosts_new(const struct session_site *sites, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count; i++)
        for (const char *const *host = sites[i].hosts; host && *host; host++)
            names++;
    struct session_hosts *hosts =
        calloc(1, sizeof(*hosts) + hosts_slots(names) * sizeof(hosts->slots[0]));
    if (!hosts)
        return NULL;
    hosts_init(&hosts->index, hosts->slots, names);
    for (size_t i = 0; i < count; i++) {
        const char *const *host = sites[i].hosts;
        if (!hosts->everything && (!host || !*host))
            hosts->everything = &sites[i];
        for (; host && *host; host++)
            hosts_add(&hosts->index, *host, &sites[i]);
    }
    return hosts;
}

void session_hosts_free(struct session_hosts *hosts)
{
    free(hosts);
}

const struct session_site *session_hosts_find(const struct session_hosts *hosts, struct span host)
{
    const struct hosts_slot *slot = hosts_find(&hosts->index, host);
    return slot ? slot->value : hosts->everything;
}

struct span session_hosts_rule(const struct session_hosts *hosts, struct span host)
{
    const struct hosts_slot *slot = hosts_find(&hosts->index, host);
    return slot ? slot->name : SPAN("*");
}
