/* SPDX-License-Identifier: MIT */
#include "base/hosts.h"

#include "base/hash.h"

size_t hosts_slots(size_t names)
{
    size_t slots = 8;
    while (slots < 2 * names)
        slots *= 2;
    return slots;
}

void hosts_init(struct hosts *hosts, struct hosts_slot *slots, size_t names)
{
    *hosts = (struct hosts){ .slots = slots, .mask = hosts_slots(names) - 1 };
}

/* The slot of the name, or the empty slot where the name would be. */
static struct hosts_slot *find_host_slot(const struct hosts *hosts, struct span name)
{
    size_t i = (size_t)hash_bytes(name, 0) & hosts->mask;
    while (hosts->slots[i].value && !span_equal(hosts->slots[i].name, name))
        i = (i + 1) & hosts->mask;
    return &hosts->slots[i];
}

void hosts_add(struct hosts *hosts, const char *text, const void *value)
{
    struct span name = span_text(text);
    if (span_starts(name, SPAN("*."))) {
        name = span_skip(name, 1);
        hosts->wildcards = true;
    }
    struct hosts_slot *slot = find_host_slot(hosts, name);
    if (slot->value)
        return;
    *slot = (struct hosts_slot){ name, value };
    hosts->names++;
}

const struct hosts_slot *hosts_find(const struct hosts *hosts, struct span host)
{
    char lower[HOSTS_NAME_MAX + 1]; /* and a final dot */
    if (hosts->names == 0 || host.len > sizeof(lower))
        return NULL;
    for (size_t i = 0; i < host.len; i++)
        lower[i] = ascii_lower(host.at[i]);
    struct span name = span_of(lower, host.len);
    if (name.len > 1 && name.at[name.len - 1] == '.')
        name.len--; /* with a final dot it is the same host */

    const struct hosts_slot *slot = find_host_slot(hosts, name);
    if (slot->value || !hosts->wildcards)
        return slot->value ? slot : NULL;
    for (size_t dot = 1; dot < name.len; dot++) {
        if (name.at[dot] != '.')
            continue;
        slot = find_host_slot(hosts, span_skip(name, dot));
        if (slot->value)
            return slot;
    }
    return NULL;
}
