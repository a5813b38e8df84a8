/* SPDX-License-Identifier: MIT */
#include "server/capacity.h"

#include "log/error.h"
#include "os/group.h"
#include "os/process.h"
#include "server/resources.h"
#include "session/fetch.h"
#include "task/task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    FILES_OF_WORKER = 48,  /* logs, signals, channels to the master, a message from one */
    FILES_OF_THREAD = 8,   /* an epoll set or ring, an eventfd, and what a lookup has open */
    FILES_OF_FETCHER = 6,  /* the forms of a file, and a page in Markdown or a folder */
    FILES_OF_LISTER = 2,   /* a folder, and the target of a link or the README */
    FILES_OF_SITE = 2,     /* its folder, and its error pages */
    OPEN_FILES_SHARE = 4,  /* this part of the other descriptors is for large files */
    CACHE_FILES_SHARE = 2, /* of those: the rest is for files that left the cache in an answer */
    CACHE_FILES_MAX = 1024,
    LIMIT_MAX = 96
};

void server_capacity_workers(const struct config *config, const struct model *model,
                             unsigned *ret_workers, unsigned *ret_threads)
{
    *ret_workers = config->workers > 0 ? config->workers : model->workers;
    if (model->threads < 0)
        *ret_threads = 1;
    else if (config->threads > 0)
        *ret_threads = config->threads;
    else
        *ret_threads = model->threads == MODEL_PER_CPU ? os_process_cpus(0)
                                                       : (unsigned)model->threads;
}

void server_capacity_warn(const struct config *config, const struct model *model)
{
    if (model->threads < 0 && config->threads > 0)
        log_error(LOG_WARNING, "model %s has no setting for threads; `threads = %u` is ignored",
                  model->name, config->threads);
}

static size_t smaller_count(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t listeners_of(const struct config *config)
{
    size_t count = 0;
    while (config->listen[count])
        count++;
    return count;
}

static size_t error_folders_of(const struct config *config)
{
    size_t count = 0;
    for (unsigned i = 0; i < config->site_count; i++)
        for (const char *const *folder = config->sites[i].error_folders; folder && *folder;
             folder++)
            count++;
    return count;
}

/* Each site may be on a disk of its own (task/task.h). Each loop may have listeners of its own. */
static size_t reserved_files(const struct config *config, unsigned threads)
{
    const size_t disks = smaller_count(config->site_count, TASK_DISKS);
    return FILES_OF_WORKER +
           disks * (SESSION_FETCHERS * FILES_OF_FETCHER + SESSION_LISTERS * FILES_OF_LISTER) +
           threads * (FILES_OF_THREAD + listeners_of(config)) + config->site_count * FILES_OF_SITE +
           error_folders_of(config);
}

struct server_capacity server_capacity_of(const struct config *config, const struct model *model,
                                          unsigned threads, size_t files)
{
    size_t reserved = reserved_files(config, threads);
    size_t left = files > 2 * reserved ? files - reserved : files / 2;
    size_t open_files = left / OPEN_FILES_SHARE, connections = left - open_files;
    if (model && (model->serves == STATS_SERVES_PROCESS || model->serves == STATS_SERVES_THREAD))
        connections = smaller_count(connections, MODEL_PER_CONNECTION_MAX);
    if (config->connections > 0)
        connections = smaller_count(connections, config->connections);
    return (struct server_capacity){
        .connections = (unsigned)connections,
        .open_files = (uint32_t)open_files,
        .cache_files = (uint32_t)smaller_count(open_files / CACHE_FILES_SHARE, CACHE_FILES_MAX),
    };
}

/* ---- the size of the cache ---- */

enum {
    CACHE_SHARE = 8,           /* the kernel keeps the same files in memory, too */
    CACHE_OF_CONNECTIONS = 256 /* of `fork`, which has a cache for each connection */
};
#define CACHE_LEAST (UINT64_C(4) << 20)
#define CACHE_MOST  (UINT64_C(1) << 40)

uint64_t server_capacity_cache(const struct config *config, const struct model *model,
                               uint64_t memory_bytes)
{
    const uint64_t mib = UINT64_C(1) << 20;
    unsigned workers = config->workers > 0 ? config->workers : model ? model->workers : 1;
    if (model && model->serves == STATS_SERVES_PROCESS)
        workers = CACHE_OF_CONNECTIONS;
    const uint64_t bytes = memory_bytes / CACHE_SHARE / workers / mib * mib;
    if (bytes < CACHE_LEAST)
        return CACHE_LEAST;
    return bytes < CACHE_MOST ? bytes : CACHE_MOST;
}

void server_capacity_size_cache(struct config *config)
{
    const struct os_group_memory memory = os_group_memory("");
    const struct model *model = model_all();
    while (model->name && strcmp(model->name, config->model) != 0)
        model++;
    if (memory.bytes == 0 && !memory.of_group)
        return;
    config->cache_memory_bytes = memory.bytes;
    config->cache_memory_of_group = memory.of_group;
    config->cache_size_bytes =
        server_capacity_cache(config, model->name ? model : NULL, memory.bytes);
}

/* ---- in words ---- */

/* A number of connections, and the limit that sets it. */
struct capacity {
    uint64_t count;
    char limit[LIMIT_MAX];
};

static void lower_limit(struct capacity *capacity, uint64_t count, const char *limit)
{
    if (count >= capacity->count)
        return;
    capacity->count = count;
    snprintf(capacity->limit, sizeof(capacity->limit), "%s", limit);
}

/* Each connection uses a process or a thread, and the system limits their number for all workers
 * together. */
static void lower_to_task_limit(struct capacity *capacity, const struct config *config,
                                const struct model *model, unsigned workers)
{
    bool forks = model->serves == STATS_SERVES_PROCESS;
    if (model->serves != STATS_SERVES_PROCESS && model->serves != STATS_SERVES_THREAD)
        return;
    lower_limit(capacity, MODEL_PER_CONNECTION_MAX,
                forks ? "the model's processes" : "the model's threads");
    char limit[LIMIT_MAX], name[OS_PROCESS_LIMIT_MAX];
    uint64_t most = os_process_tasks(geteuid() != 0 || server_resources_user(config->user), name);
    snprintf(limit, sizeof(limit), "%s (%s)", forks ? "processes" : "threads", name);
    lower_limit(capacity, most / workers, limit);
}

static struct capacity find_limit(const struct config *config, const struct model *model,
                                  unsigned workers, unsigned threads)
{
    size_t files = os_process_raise_files();
    struct config unlimited = *config;
    unlimited.connections = 0;
    struct server_capacity most = server_capacity_of(&unlimited, NULL, threads, files);
    struct capacity capacity = { .count = most.connections };
    snprintf(capacity.limit, sizeof(capacity.limit), "open files (ulimit -n %zu)", files);
    if (config->connections > 0)
        lower_limit(&capacity, config->connections, "the setting connections");
    lower_to_task_limit(&capacity, config, model, workers);
    if (model->serves == STATS_SERVES_POOL && strcmp(config->pool_policy, "sticky") == 0)
        lower_limit(&capacity, threads + (uint64_t)config->pool_queue,
                    "threads and pool-queue, as each thread keeps its client");
    return capacity;
}

static void say_size(uint64_t bytes, char out[24])
{
    static const char *const units[] = { "", "K", "M", "G" };
    unsigned unit = 0;
    while (unit < 3 && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 24, "%" PRIu64 "%s", bytes, units[unit]);
}

static void say_cache(const struct config *config, const char *each, char *out, size_t room)
{
    char size[24], memory[24], from[96] = "";
    say_size(config->cache_size_bytes, size);
    say_size(config->cache_memory_bytes >> 20 << 20, memory);
    if (config->cache_memory_bytes > 0)
        snprintf(from, sizeof(from), " (auto: a share of the %s of the %s)", memory,
                 config->cache_memory_of_group ? "control group" : "machine");
    snprintf(out, room, "cache %s%s%s", size, each, from);
}

void server_capacity_describe(const struct config *config, const struct model *model,
                              unsigned workers, unsigned threads, char out[SERVER_CAPACITY_MAX])
{
    struct capacity capacity = find_limit(config, model, workers, threads);
    char each[32] = "", at_once[64] = "", cache[160] = "no cache";
    if (workers > 1)
        snprintf(each, sizeof(each), " in each of %u workers", workers);
    if (model->serves == STATS_SERVES_POOL)
        snprintf(at_once, sizeof(at_once), "; %u answered at once, %" PRIu64 " may wait", threads,
                 (uint64_t)config->pool_queue);
    if (config->cache_size_bytes > 0)
        say_cache(config,
                  model->serves == STATS_SERVES_PROCESS ? " for each connection"
                  : workers > 1                         ? " in each"
                                                        : "",
                  cache, sizeof(cache));
    snprintf(out, SERVER_CAPACITY_MAX, "at most %" PRIu64 " connection%s%s, limited by %s%s; %s",
             capacity.count, capacity.count == 1 ? "" : "s", each, capacity.limit, at_once, cache);
}
