/* SPDX-License-Identifier: MIT */
#include "server/generations.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/interface.h"
#include "server/capacity.h"
#include "server/crew.h"
#include "server/page.h"
#include "server/resources.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
            server_crew_read(g);
        if (g->dispatch && fd == server_dispatch_fd(g->dispatch))
            server_dispatch_act(g->dispatch);
    }
}

/* A worker may have shut them. */
static void mend_addresses(const struct server_addresses *addresses)
{
    for (const struct server_address *a = addresses->first; a; a = a->next)
        server_address_mend(a);
}

void server_generations_tick(struct server_generation *first, struct server_addresses *addresses,
                             const struct server_generation_host *host)
{
    for (struct server_generation *g = first; g; g = g->next) {
        if (server_crew_forget_lost(g, os_clock_now_ns())) {
            addresses->dead_waiters_until_ns = UINT64_MAX;
            mend_addresses(addresses);
        }
        server_generation_tick(g, addresses, host);
    }
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

void server_generations_reap(struct server_generation *first, struct server_addresses *addresses,
                             pid_t pid, int status)
{
    struct server_generation *g = first;
    while (g && !server_crew_reap(g, pid, status))
        g = g->next;
    if (!g)
        return;
    if (status != 0)
        server_listeners_note_death(addresses, os_clock_now_ns());
    mend_addresses(addresses);
}

void server_generations_remove_gone(struct server_generation **first,
                                    struct server_generation **serving,
                                    struct server_addresses *addresses)
{
    struct server_generation **link = first;
    while (*link) {
        struct server_generation *g = *link;
        if (g->state != GENERATION_DRAINING || !server_crew_is_gone(g)) {
            link = &g->next;
            continue;
        }
        *link = g->next;
        if (*serving == g)
            *serving = NULL;
        server_generation_free(g, addresses);
    }
}

unsigned server_generations_rotate_logs(struct server_generation *first,
                                        const struct server_page *page)
{
    struct server_logs_rotation rotation = { 0 };
    struct server_logs_message own = server_logs_rotate_own(&first->logs, &rotation);
    for (struct server_generation *g = first; g; g = g->next)
        server_crew_rotate_logs(g, &rotation);
    server_logs_pass(&page->logs, page->pid, &own, &rotation);
    server_logs_rotation_report(&rotation);
    server_logs_rotation_end(&rotation);
    return rotation.failed;
}

/* ---- in words ---- */

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

void server_generations_describe(const struct server_generation *g, char out[SERVER_SUMMARY_MAX])
{
    char why[MODEL_WHY_MAX + 32] = "";
    out[0] = '\0';
    if (!g)
        return;
    if (g->model_why[0])
        snprintf(why, sizeof(why), " (%s: %s)", g->config->model, g->model_why);
    snprintf(out, SERVER_SUMMARY_MAX, "model %s%s, %u worker%s x %u thread%s", g->model->name, why,
             g->workers, plural(g->workers), g->threads, plural(g->threads));
}

enum { URLS_SHOWN_MAX = 8 };

/* Writes the URLs of one listener; those of a wildcard are the addresses that clients can use.
 * Returns how many there are, also when that is more than URLS_SHOWN_MAX. */
static size_t urls_of(const struct server_listener *listener,
                      char urls[URLS_SHOWN_MAX][SERVER_URL_MAX + 1])
{
    struct os_socket_address each[URLS_SHOWN_MAX];
    if (!listener->address)
        return 0;
    size_t count = os_interface_reach(&listener->address->got, each, URLS_SHOWN_MAX);
    for (size_t i = 0; i < count && i < URLS_SHOWN_MAX; i++) {
        char url[SERVER_URL_MAX];
        urls[i][0] = '\0';
        if (os_socket_url(&each[i], url, sizeof(url)))
            snprintf(urls[i], sizeof(urls[i]), "%.4s%s%s", url, listener->tls ? "s" : "", url + 4);
    }
    return count;
}

static void print_urls(const struct server_listeners *listeners, const char *before)
{
    for (size_t i = 0; i < listeners->count; i++) {
        char urls[URLS_SHOWN_MAX][SERVER_URL_MAX + 1];
        size_t count = urls_of(&listeners->each[i], urls);
        for (size_t j = 0; j < count && j < URLS_SHOWN_MAX; j++)
            if (urls[j][0])
                fprintf(stderr, "%s%s\n", before, urls[j]);
        if (count > URLS_SHOWN_MAX)
            fprintf(stderr, "%sat %zu more addresses of this machine\n", before,
                    count - URLS_SHOWN_MAX);
    }
}

static void add_url(char *out, size_t room, const char *url)
{
    size_t len = strlen(out), more = strlen(url) + (len > 0);
    if (url[0] && more < room - len)
        snprintf(out + len, room - len, "%s%s", len > 0 ? "\n" : "", url);
}

void server_generations_write_urls(const struct server_listeners *listeners, char *out, size_t room)
{
    out[0] = '\0';
    for (size_t i = 0; i < listeners->count; i++) {
        char urls[URLS_SHOWN_MAX][SERVER_URL_MAX + 1];
        size_t count = urls_of(&listeners->each[i], urls);
        for (size_t j = 0; j < count && j < URLS_SHOWN_MAX; j++)
            add_url(out, room, urls[j]);
    }
}

void server_generations_print(const struct server_generation *g,
                              const struct server_listeners *page)
{
    char text[SERVER_SUMMARY_MAX], capacity[SERVER_CAPACITY_MAX];
    server_generations_describe(g, text);
    server_capacity_describe(g->config, g->model, g->workers, g->threads, capacity);
    print_urls(&g->listeners, "weir serves ");
    print_urls(page, "statistics: ");
    if (g->tls.local)
        fprintf(stderr, "self-signed certificate: %s, SHA-256 %s; to trust it: curl --cacert %s\n",
                g->tls.local->certificate, g->tls.local->fingerprint, g->tls.local->certificate);
    fprintf(stderr, "%s\n%s; stop with Ctrl-C\n", text, capacity);
    const char *user = server_resources_user(g->config->user);
    if (geteuid() == 0 && !user)
        fprintf(stderr, "the workers stay root: this process may not change its user\n");
    else if (!g->config->user && user)
        fprintf(stderr, "started as root: the workers run as %s; choose with --user\n", user);
}

unsigned server_generations_count_workers(const struct server_generation *first)
{
    unsigned count = 0;
    for (const struct server_generation *g = first; g; g = g->next)
        for (unsigned i = 0; g->slots && i < g->workers; i++)
            count += g->slots[i].pid > 0;
    return count;
}

/* Joins the lines of a report, without those of warnings: these are no reasons. */
static void join_reasons(char *report)
{
    static const char warning[] = ": warning: ";
    char *out = report, *line = report;
    for (size_t len; *line != '\0'; line += len) {
        const char *end = strchrnul(line, '\n');
        const char *found = memmem(line, (size_t)(end - line), warning, sizeof(warning) - 1);
        len = (size_t)(end - line) + (*end == '\n');
        if (found)
            continue;
        memmove(out, line, len);
        out += len;
        if (out[-1] == '\n')
            out[-1] = '|';
    }
    if (out > report && out[-1] == '|')
        out--;
    *out = '\0';
}

void server_generations_log_reload(const struct server_generation *g, char *report)
{
    char text[SERVER_SUMMARY_MAX];
    server_generations_describe(g, text);
    if (g) {
        log_error(LOG_INFO, "reloaded: %s, %u site%s", text, g->config->site_count,
                  plural(g->config->site_count));
        return;
    }
    join_reasons(report);
    log_error(LOG_ERROR, "the reload failed, and the old configuration stays in use: %s",
              report[0] ? report : "out of memory");
}
