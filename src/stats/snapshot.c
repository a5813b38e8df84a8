/* SPDX-License-Identifier: MIT */
#include "stats/snapshot.h"

#include "base/histogram.h"
#include "base/num.h"
#include "os/file.h"
#include "os/usage.h"
#include "stats/recent.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool reject(char why[STATS_WHY_MAX], const char *text)
{
    snprintf(why, STATS_WHY_MAX, "%s", text);
    return false;
}

/* ---- summing up ---- */

static uint64_t cell_of_copy(const stats_cell *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static void sum_durations(struct span arena, const struct stats_durations *from,
                          struct stats_counts *to)
{
    for (unsigned run = 0; run < STATS_RUNS; run++) {
        const stats_cell *cells =
            stats_copy_at(arena, &from->run[run], STATS_RUN_BUCKETS * sizeof(*cells));
        uint64_t *buckets = &to->bucket[(size_t)run * STATS_RUN_BUCKETS];
        for (unsigned i = 0; cells && i < STATS_RUN_BUCKETS; i++) {
            uint64_t count = cell_of_copy(&cells[i]);
            buckets[i] += count;
            to->count += count;
        }
    }
    to->sum_ns += cell_of_copy(&from->sum_ns);
}

static void add_counts(const struct stats_counts *from, struct stats_counts *to)
{
    for (size_t i = 0; i < STATS_BUCKETS; i++)
        to->bucket[i] += from->bucket[i];
    to->count += from->count;
    to->sum_ns += from->sum_ns;
}

static void read_row(struct span arena, const struct stats_row *row, struct stats_site *to)
{
    to->requests += cell_of_copy(&row->requests);
    to->body_bytes += cell_of_copy(&row->body_bytes);
    for (unsigned i = 0; i < 5; i++)
        to->by_class[i] += cell_of_copy(&row->by_class[i]);
    sum_durations(arena, &row->latency, &to->latency);
}

/* `used` arenas have a process: a gauge counts only then. */
static void read_block(struct span arena, bool used, const struct stats_block *block,
                       struct stats_snapshot *to)
{
    for (unsigned i = 0; i < STATS_COUNTERS; i++)
        if (used || i >= STATS_NAMED || stats_counters[i].kind == STATS_KIND_COUNTER)
            to->counter[i] += cell_of_copy(&block->counter[i]);
    sum_durations(arena, &block->queue_wait, &to->histogram[STATS_HISTOGRAM_queue_wait]);
    sum_durations(arena, &block->disk_wait, &to->histogram[STATS_HISTOGRAM_disk_wait]);
    sum_durations(arena, &block->handshake, &to->histogram[STATS_HISTOGRAM_handshake]);
    sum_durations(arena, &block->sending, &to->histogram[STATS_HISTOGRAM_sending]);
    for (unsigned i = 0; i < STATS_SITES_MAX; i++) {
        const struct stats_row *row = stats_copy_at(arena, &block->row[i], sizeof(*row));
        if (row)
            read_row(arena, row, &to->site[i]);
    }
}

static const struct stats_header *header_of(const struct stats_copy *copy)
{
    return (const struct stats_header *)(const void *)copy->head.at;
}

/* Keeps the newest answers of all arenas. */
static void add_recent(const struct stats_answer *answer, struct stats_answer *newest,
                       unsigned *count)
{
    unsigned at = *count;
    while (at > 0 && newest[at - 1].at_ns < answer->at_ns)
        at--;
    if (at == STATS_RECENT_MAX)
        return;
    unsigned moved = (*count < STATS_RECENT_MAX ? *count : STATS_RECENT_MAX - 1) - at;
    memmove(&newest[at + 1], &newest[at], moved * sizeof(*newest));
    newest[at] = *answer;
    *count += *count < STATS_RECENT_MAX;
}

static void read_recent(const struct stats_arena_header *header, struct stats_snapshot *to)
{
    struct stats_answer answer;
    for (unsigned kind = 0; kind < STATS_RECENT_KINDS; kind++)
        for (unsigned i = 0; i < STATS_RECENT_MAX; i++)
            if (stats_recent_read(&header->recent[kind].place[i], &answer))
                add_recent(&answer, to->recent[kind], &to->recent_count[kind]);
}

/* The survey has found the arena sound. */
static void add_arena(const struct stats_copy *copy, unsigned index, struct stats_snapshot *to)
{
    struct span arena = copy->arena[index];
    const struct stats_arena_header *header = stats_copy_header(arena);
    const struct stats_arena_record *record = &header_of(copy)->arena[index];
    bool used = atomic_load_explicit(&record->owner, memory_order_relaxed) != 0;
    to->taken_bytes += arena.len;
    to->unseen += cell_of_copy(&header->unseen);
    read_recent(header, to);
    const _Atomic uint32_t *place = &header->first_block;
    const struct stats_block *block;
    for (; (block = stats_copy_at(arena, place, sizeof(*block))); place = &block->next) {
        read_block(arena, used, block, to);
        to->parts[to->part_count++] = (struct stats_part){
            .owner = atomic_load_explicit(&block->owner, memory_order_relaxed),
            .block = (uint64_t)index << 32 | (uint64_t)((const char *)block - arena.at),
            .requests = cell_of_copy(&block->counter[STATS_requests]),
        };
    }
}

/* ---- a snapshot ---- */

static void copy_string(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    to[size - 1] = '\0';
}

/* Copies only moments whose times rise, because the segment is not trusted. */
static void copy_moments(const struct stats_header *from, struct stats_snapshot *to)
{
    uint64_t last_ns = 0;
    for (unsigned i = 0; i < STATS_MOMENTS; i++) {
        const struct stats_moment *moment = &from->moment[(from->moments + i) % STATS_MOMENTS];
        if (moment->at_ns <= last_ns)
            continue;
        last_ns = moment->at_ns;
        to->moment[to->moment_count++] = *moment;
    }
}

static void copy_certificates(const struct stats_header *from, struct stats_snapshot *to)
{
    uint64_t count = from->certificate_count;
    to->certificate_count = count < STATS_CERTIFICATES_MAX ? (unsigned)count
                                                           : STATS_CERTIFICATES_MAX;
    for (unsigned i = 0; i < to->certificate_count; i++) {
        struct stats_certificate *certificate = &to->certificate[i];
        *certificate = from->certificate[i];
        certificate->name[sizeof(certificate->name) - 1] = '\0';
        stats_copy_text(certificate->key, certificate->key, sizeof(certificate->key));
    }
}

static bool copy_header(const struct stats_header *from, struct stats_snapshot *to,
                        char why[STATS_WHY_MAX])
{
    stats_copy_text(to->weir, from->weir, sizeof(to->weir));
    to->master = atomic_load_explicit(&from->master, memory_order_relaxed);
    uint64_t started = atomic_load_explicit(&from->master_started, memory_order_relaxed);
    to->running = to->master > 0 && started != 0 && os_usage_started(to->master) == started;
    uint32_t state = atomic_load_explicit(&from->state, memory_order_relaxed);
    to->state = state < STATS_STATES ? (enum stats_state)state : STATS_STARTING;
    to->started_s = from->started_s;
    to->heartbeat_ns = atomic_load_explicit(&from->heartbeat_ns, memory_order_relaxed);
    to->unseen = cell_of_copy(&from->unseen);
    to->generation = from->generation;
    for (unsigned i = 0; i < STATS_GENERATIONS_MAX; i++) {
        struct stats_generation *one = &to->generations[i];
        *one = from->generations[i];
        stats_copy_text(one->model, one->model, sizeof(one->model));
        stats_copy_text(one->sandbox, one->sandbox, sizeof(one->sandbox));
        one->urls[sizeof(one->urls) - 1] = '\0';
        one->page_urls[sizeof(one->page_urls) - 1] = '\0';
        if (one->accepts > STATS_ACCEPTS_EACH)
            one->accepts = STATS_ACCEPTS_ONE;
        if (one->serves > STATS_SERVES_PROCESS)
            one->serves = STATS_SERVES_LOOP;
    }
    to->reloaded_s = from->reloaded_s;
    to->reload_failed = from->reload_failed != 0;
    copy_string(to->reload_error, from->reload_error, sizeof(to->reload_error));
    copy_certificates(from, to);
    copy_moments(from, to);
    to->site_count = atomic_load_explicit(&from->site_count, memory_order_relaxed);
    if (to->site_count < 1 || to->site_count > STATS_SITES_MAX)
        return reject(why, "is damaged: it has an impossible number of sites");
    return true;
}

/* Surveys all arenas: a damaged one is left out. Allocates only what is in use. All 64 sites with
 * their buckets would be a megabyte, and most servers have one site. A reader may read ten times a
 * second. */
static bool allocate_snapshot(struct stats_copy *copy, struct stats_snapshot *to,
                              unsigned *ret_rows, char why[STATS_WHY_MAX])
{
    size_t blocks = 0;
    unsigned rows = to->site_count;
    for (unsigned i = 0; i < copy->arena_count; i++) {
        struct stats_survey found = stats_copy_survey(copy->arena[i]);
        if (found.damaged) {
            to->damaged++;
            copy->arena[i].len = 0;
            continue;
        }
        blocks += found.blocks;
        rows = found.rows > rows ? found.rows : rows;
    }
    to->parts = calloc(blocks + 1, sizeof(*to->parts));
    to->site = calloc(rows, sizeof(*to->site));
    if (!to->parts || !to->site)
        return reject(why, "cannot be read: out of memory");
    for (unsigned i = 0; i < rows; i++)
        copy_string(to->site[i].name, header_of(copy)->site[i], sizeof(to->site[i].name));
    *ret_rows = rows;
    return true;
}

static void derive(unsigned rows, struct stats_snapshot *s)
{
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        s->pair[i] = stats_counters_pair(i, s->counter);
    for (unsigned i = 0; i < rows; i++)
        if (s->site[i].latency.count > 0)
            add_counts(&s->site[i].latency, &s->histogram[STATS_HISTOGRAM_latency]);
}

struct stats_snapshot *stats_snapshot_of(struct stats_copy *copy, char why[STATS_WHY_MAX])
{
    if (!stats_copy_is_head(copy->head, why))
        return NULL;
    struct stats_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (!snapshot) {
        reject(why, "cannot be read: out of memory");
        return NULL;
    }
    snapshot->taken_bytes = copy->head.len;
    unsigned rows = 0;
    if (!copy_header(header_of(copy), snapshot, why) ||
        !allocate_snapshot(copy, snapshot, &rows, why)) {
        stats_snapshot_free(snapshot);
        return NULL;
    }
    for (unsigned i = 0; i < copy->arena_count; i++)
        if (copy->arena[i].len > 0)
            add_arena(copy, i, snapshot);
    derive(rows, snapshot);
    return snapshot;
}

void stats_snapshot_free(struct stats_snapshot *snapshot)
{
    if (!snapshot)
        return;
    free(snapshot->parts);
    free(snapshot->site);
    free(snapshot);
}

struct stats_snapshot *stats_snapshot_take(const char *name, char why[STATS_WHY_MAX])
{
    struct stats_copy copy;
    struct stats_snapshot *snapshot =
        stats_copy_take(name, &copy, why) ? stats_snapshot_of(&copy, why) : NULL;
    stats_copy_done(&copy);
    return snapshot;
}

struct stats_snapshot *stats_snapshot_here(const struct stats_segment *segment,
                                           char why[STATS_WHY_MAX])
{
    struct stats_copy copy;
    struct stats_snapshot *snapshot =
        stats_copy_here(segment, &copy, why) ? stats_snapshot_of(&copy, why) : NULL;
    stats_copy_done(&copy);
    return snapshot;
}

/* ---- durations ---- */

uint64_t stats_snapshot_quantile_ns(const struct stats_counts *counts, double part)
{
    size_t index = histogram_quantile(counts->bucket, STATS_BUCKETS, counts->count, part);
    return index < STATS_BUCKETS ? histogram_middle(index, STATS_BITS) << STATS_UNIT_BITS : 0;
}

uint64_t stats_snapshot_at_most(const struct stats_counts *counts, uint64_t ns)
{
    return histogram_at_most(counts->bucket, STATS_BUCKETS, ns >> STATS_UNIT_BITS, STATS_BITS);
}

/* ---- finding segments ---- */

/* "weir-UID-PID" and nothing else. */
static bool parse_segment_name(const char *text, uint64_t *ret_uid, uint64_t *ret_pid)
{
    struct span name = span_text(text);
    if (!span_starts(name, SPAN("weir-")))
        return false;
    name = span_skip(name, 5);
    size_t len = strcspn(name.at, "-");
    return len < name.len && num_parse_u64(span_first(name, len), ret_uid) &&
           num_parse_u64(span_skip(name, len + 1), ret_pid) && *ret_uid <= UINT_MAX &&
           *ret_pid > 0 && *ret_pid <= INT_MAX;
}

static struct stats_instance instance_of(const struct dirent *entry, uint64_t uid, uint64_t pid)
{
    struct stats_instance instance = { .pid = (pid_t)pid, .file = entry->d_ino };
    stats_segment_name(instance.name, (uid_t)uid, (pid_t)pid);
    return instance;
}

/* Any user can make a folder with any name. */
static bool is_planted(DIR *folder, const char *name, uint64_t uid)
{
    struct stat info;
    return os_file_stat_at(dirfd(folder), name, &info) < 0 || info.st_uid != uid;
}

static void swap_instances(struct stats_instance *a, struct stats_instance *b)
{
    const struct stats_instance kept = *a;
    *a = *b;
    *b = kept;
}

size_t stats_snapshot_find_instance(uid_t uid, pid_t pid,
                                    struct stats_instance instances[STATS_INSTANCES_MAX])
{
    DIR *folder = opendir(STATS_FOLDER);
    size_t count = 0;
    const struct dirent *each;
    while (folder && count < STATS_INSTANCES_MAX && (each = readdir(folder))) {
        uint64_t its_uid, its_pid;
        if (!parse_segment_name(each->d_name, &its_uid, &its_pid) ||
            (pid != 0 ? its_pid != (uint64_t)pid : its_uid != uid) ||
            is_planted(folder, each->d_name, its_uid))
            continue;
        const bool first = count > 0 && pid != 0 && os_usage_is_of_user(pid, (uid_t)its_uid);
        instances[count] = instance_of(each, its_uid, its_pid);
        if (first)
            swap_instances(&instances[0], &instances[count]);
        count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

bool stats_snapshot_follow_instance(struct stats_instance *instance)
{
    DIR *folder = opendir(STATS_FOLDER);
    bool found = false;
    const struct dirent *each;
    while (folder && !found && (each = readdir(folder))) {
        uint64_t its_uid, its_pid;
        found = each->d_ino == instance->file &&
                parse_segment_name(each->d_name, &its_uid, &its_pid);
        if (found)
            *instance = instance_of(each, its_uid, its_pid);
    }
    if (folder)
        closedir(folder);
    return found;
}
