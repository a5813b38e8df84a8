/* SPDX-License-Identifier: MIT */
#include "session/hosts.h"

#include "base/hash.h"
#include "session/thread.h"

#include <stdint.h>
#include <stdlib.h>

enum { HOST_MAX = 253 }; /* RFC 1035 section 2.3.4, as text */

struct slot {
    struct span name; /* without the "*" of a wildcard: ".example.org" */
    const struct session_site *site;
};

struct session_hosts {
    struct slot everything; /* for hosts that no name matches; may have no site */
    bool wildcards;
    size_t mask;
    size_t names;
    struct slot slot[];
};

/* The slot of the name, or the slot without a site where the name would be. */
static size_t find_host_slot(const struct session_hosts *hosts, struct span name)
{
    size_t i = (size_t)hash_bytes(name, 0) & hosts->mask;
    while (hosts->slot[i].site && !span_equal(hosts->slot[i].name, name))
        i = (i + 1) & hosts->mask;
    return i;
}

static const struct slot *find_exactly(const struct session_hosts *hosts, struct span name)
{
    return &hosts->slot[find_host_slot(hosts, name)];
}

static void add_host_names(struct session_hosts *hosts, const struct session_site *site)
{
    if (!site->hosts || !site->hosts[0]) {
        if (!hosts->everything.site)
            hosts->everything.site = site;
        return;
    }
    for (const char *const *host = site->hosts; *host; host++) {
        struct span name = span_text(*host);
        if (span_starts(name, SPAN("*."))) {
            name = span_skip(name, 1);
            hosts->wildcards = true;
        }
        struct slot *slot = &hosts->slot[find_host_slot(hosts, name)];
        if (slot->site)
            continue; /* of two sites with the same name, the first has it */
        *slot = (struct slot){ name, site };
        hosts->names++;
    }
}

struct session_hosts *session_hosts_new(const struct session_site *sites, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count; i++)
        for (const char *const *host = sites[i].hosts; host && *host; host++)
            names++;
    size_t slots = 8;
    while (slots < 2 * names)
        slots *= 2;

    struct session_hosts *hosts = calloc(1, sizeof(*hosts) + slots * sizeof(hosts->slot[0]));
    if (!hosts)
        return NULL;
    hosts->mask = slots - 1;
    hosts->everything.name = SPAN("*");
    for (size_t i = 0; i < count; i++)
        add_host_names(hosts, &sites[i]);
    return hosts;
}

void session_hosts_free(struct session_hosts *hosts)
{
    free(hosts);
}

static const struct slot *find_name(const struct session_hosts *hosts, struct span host)
{
    char lower[HOST_MAX];
    if (hosts->names == 0 || host.len > sizeof(lower))
        return &hosts->everything;
    for (size_t i = 0; i < host.len; i++)
        lower[i] = ascii_lower(host.at[i]);
    struct span name = span_of(lower, host.len);
    if (name.len > 1 && name.at[name.len - 1] == '.')
        name.len--; /* with a final dot it is the same host */

    const struct slot *slot = find_exactly(hosts, name);
    if (slot->site || !hosts->wildcards)
        return slot->site ? slot : &hosts->everything;
    for (size_t dot = 1; dot < name.len; dot++) {
        if (name.at[dot] != '.')
            continue;
        slot = find_exactly(hosts, span_skip(name, dot));
        if (slot->site)
            return slot;
    }
    return &hosts->everything;
}

const struct session_site *session_hosts_find(const struct session_hosts *hosts, struct span host)
{
    return find_name(hosts, host)->site;
}

struct span session_hosts_rule(const struct session_hosts *hosts, struct span host)
{
    return find_name(hosts, host)->name;
}
