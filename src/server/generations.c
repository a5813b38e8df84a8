/* SPDX-License-Identifier: MIT */
#include "server/generations.h"

unsigned server_generations_count(const struct server_generation *first)
{
    unsigned count = 0;
    for (const struct server_generation *g = first; g; g = g->next)
        count++;
    return count;
}

size_t server_generations_poll(const struct server_generation *first, struct pollfd *ends)
{
    size_t count = 0;
    for (const struct server_generation *g = first; g; g = g->next) {
        if (g->ready_pipe[0] >= 0)
            ends[count++] = (struct pollfd){ .fd = g->ready_pipe[0], .events = POLLIN };
        if (g->dispatch)
            ends[count++] =
                (struct pollfd){ .fd = server_dispatch_fd(g->dispatch), .events = POLLIN };
    }
    return count;
}

void server_generations_act(struct server_generation *first, int fd)
{
    for (struct server_generation *g = first; g; g = g->next) {
        if (fd == g->ready_pipe[0])
            server_generation_read(g);
        if (g->dispatch && fd == server_dispatch_fd(g->dispatch))
            server_dispatch_act(g->dispatch);
    }
}

void server_generations_tick(struct server_generation *first, struct server_addresses *addresses,
                             const struct server_generation_host *host)
{
    for (struct server_generation *g = first; g; g = g->next)
        server_generation_tick(g, addresses, host);
}

uint64_t server_generations_due_ns(const struct server_generation *first)
{
    uint64_t due = UINT64_MAX;
    for (const struct server_generation *g = first; g; g = g->next) {
        uint64_t its = server_generation_due_ns(g);
        due = its < due ? its : due;
    }
    return due;
}

void server_generations_reap(struct server_generation *first, pid_t pid, int status)
{
    struct server_generation *g = first;
    while (g && !server_generation_reap(g, pid, status))
        g = g->next;
}

void server_generations_bury(struct server_generation **first, struct server_generation **serving,
                             struct server_addresses *addresses)
{
    struct server_generation **link = first;
    while (*link) {
        struct server_generation *g = *link;
        if (g->state != GENERATION_DRAINING || !server_generation_is_gone(g)) {
            link = &g->next;
            continue;
        }
        *link = g->next;
        if (*serving == g)
            *serving = NULL;
        server_generation_free(g, addresses);
    }
}
