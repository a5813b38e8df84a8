/* SPDX-License-Identifier: MIT */
#include "server/stats.h"

#include "base/duration.h"
#include "base/hash.h"
#include "config/read.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/socket.h"
#include "server/generation.h"
#include "server/generations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool borrow_segment(struct server_stats *stats, pid_t predecessor)
{
    char name[STATS_NAME_MAX];
    stats_segment_name(name, geteuid(), predecessor);
    int rc = predecessor > 0 ? stats_segment_borrow(&stats->segment, name) : -ENOENT;
    if (rc == -EPROTO)
        log_error(LOG_INFO, "the statistics restart at 0: this version has other counters");
    stats->borrowed = rc == 0;
    return stats->borrowed;
}

static void make_segment(struct server_stats *stats, pid_t predecessor)
{
    int why = 0;
    int rc = borrow_segment(stats, predecessor) ? 0 : stats_segment_create(&stats->segment, &why);
    if (rc < 0)
        log_error(LOG_WARNING, "the statistics are off: %s", strerror(-rc));
    else if (why < 0)
        log_error(LOG_WARNING,
                  "`weir stats` cannot find this server: no shared memory in " STATS_FOLDER " (%s)",
                  strerror(-why));
    if (rc < 0)
        return;
    stats_writer_open(&stats->writer, &stats->segment);
    os_process_return_large_blocks(); /* each moment is a copy of all arenas */
}

void server_stats_use(struct server_stats *stats, const struct config *config, pid_t predecessor)
{
    if (!config->stats)
        return;
    if (!stats->asked)
        make_segment(stats, predecessor);
    stats->asked = true;
    for (unsigned i = 0; stats->segment.header && i < config->site_count; i++)
        stats_segment_add_site(&stats->segment, config->sites[i].name);
}

/* ---- workers ---- */

unsigned server_stats_reserve(struct server_stats *stats, const struct config *config)
{
    if (!config->stats || !stats->segment.header)
        return STATS_ARENA_NONE;
    return stats_arena_claim(&stats->segment, false);
}

const struct stats_segment *server_stats_enter(struct server_stats *stats,
                                               const struct config *config, unsigned arena)
{
    if (!stats->segment.header)
        return NULL;
    if (!config->stats) {
        stats_segment_leave(&stats->segment);
        return NULL;
    }
    int rc = stats_segment_enter(&stats->segment, arena);
    if (rc < 0)
        log_error(LOG_WARNING, "the statistics of this worker are off: %s", strerror(-rc));
    else if (!stats->segment.base)
        log_error(LOG_WARNING, "nothing that this worker does is counted: the memory for its "
                               "statistics is damaged, or none is left");
    return rc < 0 ? NULL : &stats->segment;
}

static void count_event(const struct server_stats *stats, enum stats_counter counter,
                        uint64_t times)
{
    if (stats->segment.header)
        stats_writer_add(&stats->writer, counter, times);
}

void server_stats_forked(const struct server_stats *stats, unsigned arena, pid_t pid)
{
    count_event(stats, STATS_worker_starts, pid > 0);
    if (stats->segment.header)
        stats_arena_give(&stats->segment, arena, pid > 0 ? pid : 0);
}

void server_stats_reaped(const struct server_stats *stats, pid_t pid, int status)
{
    if (!stats->segment.header)
        return;
    const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    count_event(stats, STATS_worker_deaths, !clean && stats_arena_is_of(&stats->segment, pid));
    (void)stats_arena_settle(&stats->segment, &stats->writer, pid);
}

uint64_t server_stats_hash(const struct config_store *store)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return 0;
    config_read_explain(store, out);
    uint64_t hash = fclose(out) == 0 ? hash_bytes(span_of(text, len), 0) : 0;
    free(text);
    return hash;
}

/* Adds a generation to the segment. */
static void describe_generation(struct server_stats *stats, const struct server_generation *g,
                                const struct server_listeners *page)
{
    stats_segment_certificates(&stats->segment, g->tls.certificates, g->tls.certificate_count);
    struct stats_generation generation = {
        .configuration = server_stats_hash(g->store),
        .slow_ns = g->config->stats_slow_ns,
        .cache_bytes = g->config->cache_size_bytes,
        .started_s = os_clock_wall_s(),
        .workers = g->workers,
        .threads = g->threads,
        .accepts = g->model->accepts,
        .serves = g->model->serves,
    };
    snprintf(generation.model, sizeof(generation.model), "%s", g->model->name);
    snprintf(generation.sandbox, sizeof(generation.sandbox), "%.127s", g->sandbox.in_force);
    server_generations_write_urls(&g->listeners, generation.urls, sizeof(generation.urls));
    server_generations_write_urls(page, generation.page_urls, sizeof(generation.page_urls));
    stats_segment_generation(&stats->segment, &generation);
}

void server_stats_serving(struct server_stats *stats, const struct server_generation *g,
                          const struct server_listeners *page)
{
    if (!stats->segment.header)
        return;
    if (stats->borrowed) {
        stats_segment_own(&stats->segment);
        if (stats->segment.header->reload_failed) /* this process has read the file again */
            stats_segment_reloaded(&stats->segment, NULL, os_clock_wall_s());
    }
    stats->borrowed = false;
    stats_segment_set_state(&stats->segment, STATS_SERVING);
    server_stats_rotated(stats, 0); /* its logs were just opened */
    server_stats_certificates(stats, false);
    server_stats_users(stats, false);
    stats_writer_set(&stats->writer, STATS_site_rules_refused, g->sitefiles.lines.warning_count);
    stats_writer_set(&stats->writer, STATS_certificates_end_s,
                     g->tls.certificate_count > 0 ? (uint64_t)g->tls.certificates[0].ends_s : 0);
    describe_generation(stats, g, page);
}

void server_stats_take_back(struct server_stats *stats, const struct server_generation *g,
                            const struct server_listeners *page, bool stopping)
{
    if (!stats->segment.header || stats->borrowed || stats_segment_is_own(&stats->segment))
        return;
    stats_segment_own(&stats->segment);
    stats_segment_set_state(&stats->segment, stopping ? STATS_STOPPING : STATS_SERVING);
    if (g)
        describe_generation(stats, g, page);
}

void server_stats_stopping(const struct server_stats *stats)
{
    stats_segment_set_state(&stats->segment, STATS_STOPPING);
}

void server_stats_reloaded(const struct server_stats *stats, const char *error)
{
    if (!stats->segment.header)
        return;
    count_event(stats, error ? STATS_reloads_failed : STATS_reloads, 1);
    stats_segment_reloaded(&stats->segment, error, os_clock_wall_s());
}

void server_stats_rotated(const struct server_stats *stats, unsigned failed)
{
    count_event(stats, STATS_log_reopens_failed, failed);
    if (stats->segment.base)
        stats_writer_set(&stats->writer, STATS_logs_stale, failed);
}

void server_stats_folders(const struct server_stats *stats, unsigned gone)
{
    if (stats->segment.base)
        stats_writer_set(&stats->writer, STATS_folders_gone, gone);
}

void server_stats_certificates(struct server_stats *stats, bool refused)
{
    count_event(stats, STATS_certificates_refused, refused);
    if (stats->segment.base)
        stats_writer_set(&stats->writer, STATS_certificates_stale, refused);
}

void server_stats_users(struct server_stats *stats, bool refused)
{
    count_event(stats, STATS_users_refused, refused);
    if (stats->segment.base)
        stats_writer_set(&stats->writer, STATS_users_stale, refused);
}

/* The kernel counts overflows for all sockets of the network namespace, and for each socket the
 * drops for any reason. The smaller of the two increases counts as this server's overflows.
 * The count of a socket ends with the socket: the sum may fall, and the drops in a listener's last
 * second are lost. */
static void count_overflows(struct server_stats *stats, const struct server_addresses *addresses)
{
    uint64_t drops = server_listeners_drops(addresses), overflows = os_socket_overflows();
    uint64_t ours = drops > stats->drops ? drops - stats->drops : 0;
    uint64_t all = overflows > stats->overflows ? overflows - stats->overflows : 0;
    if (stats->measured && !addresses->handed_over)
        count_event(stats, STATS_accept_overflows, ours < all ? ours : all);
    stats->measured = true;
    stats->drops = drops;
    stats->overflows = overflows;
}

/* Workers write arenas alone: only a faulty or hostile worker damages one. */
static void take_moment(struct server_stats *stats, uint64_t now_ns)
{
    stats_arena_open_all(&stats->segment);
    unsigned damaged = stats_moments_take(&stats->moments, &stats->segment, now_ns);
    if (damaged > stats->damaged)
        log_error(LOG_ERROR,
                  "a worker has damaged its statistics; they are left out, and it may have been "
                  "taken over");
    stats->damaged = damaged;
}

uint64_t server_stats_tick(struct server_stats *stats, const struct server_addresses *addresses,
                           uint64_t due_ns)
{
    if (!stats->segment.header)
        return due_ns;
    uint64_t now_ns = os_clock_now_ns();
    if (now_ns >= stats->beat_due_ns) {
        stats_segment_heartbeat(&stats->segment, now_ns);
        count_overflows(stats, addresses);
        take_moment(stats, now_ns);
        stats->beat_due_ns = now_ns + DURATION_SECOND;
    }
    return stats->beat_due_ns < due_ns ? stats->beat_due_ns : due_ns;
}

void server_stats_end(struct server_stats *stats)
{
    if (!stats->asked)
        return;
    stats_writer_close(&stats->writer);
    stats_segment_remove(&stats->segment);
}
