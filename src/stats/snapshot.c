/* SPDX-License-Identifier: MIT
 *
 * The copy is made with read(2), not by mapping. A file that was truncated then gives fewer
 * bytes instead of a fault, and nothing changes after it was checked.
 */
#include "stats/snapshot.h"

#include "base/histogram.h"
#include "base/num.h"
#include "os/file.h"
#include "os/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEQUENCE_TRIES = 1000 };

/* ---- checking ---- */

struct copy {
    const char *bytes;
    uint64_t taken;
    bool damaged;
    size_t blocks;
    unsigned rows; /* sites: the greatest number that a block has, or that have a name */
};

static bool reject(char why[STATS_WHY_MAX], const char *text)
{
    snprintf(why, STATS_WHY_MAX, "%s", text);
    return false;
}

static bool is_ours(const struct stats_header *header, char why[STATS_WHY_MAX])
{
    if (memcmp(header->magic, STATS_MAGIC, sizeof(header->magic)) != 0)
        return reject(why, "is not a statistics segment");
    if (header->version == STATS_VERSION && header->layout == stats_counters_layout() &&
        header->header_bytes == sizeof(*header) &&
        header->block_bytes == sizeof(struct stats_block))
        return true;
    snprintf(why, STATS_WHY_MAX,
             "is of another version of weir, %.*s; use `weir stats` of that version",
             (int)strnlen(header->weir, sizeof(header->weir)), header->weir);
    return false;
}

/* The bytes at a place. NULL for place 0, and for memory that was taken after the copy began. NULL
 * as well for a place that no segment has; the copy is then marked as damaged. */
static const void *find_place(struct copy *copy, uint32_t place, size_t size)
{
    if (place == 0)
        return NULL;
    if (place % CACHE_LINE != 0 || place < sizeof(struct stats_header) ||
        place > STATS_SEGMENT_BYTES - size) {
        copy->damaged = true;
        return NULL;
    }
    return place + size <= copy->taken ? copy->bytes + place : NULL;
}

/* ---- summing up ---- */

static uint64_t cell_of_copy(const stats_cell *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static void sum_durations(struct copy *copy, const struct stats_durations *from,
                          struct stats_counts *to)
{
    for (unsigned run = 0; run < STATS_RUNS; run++) {
        uint32_t place = atomic_load_explicit(&from->run[run], memory_order_relaxed);
        const stats_cell *cells = find_place(copy, place, STATS_RUN_BUCKETS * sizeof(*cells));
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

static void read_row(struct copy *copy, uint32_t place, struct stats_site *to)
{
    const struct stats_row *row = find_place(copy, place, sizeof(*row));
    if (!row)
        return;
    to->requests += cell_of_copy(&row->requests);
    to->body_bytes += cell_of_copy(&row->body_bytes);
    for (unsigned i = 0; i < 5; i++)
        to->by_class[i] += cell_of_copy(&row->by_class[i]);
    sum_durations(copy, &row->latency, &to->latency);
}

static void read_block(struct copy *copy, uint32_t place, const struct stats_block *block,
                       struct stats_snapshot *to)
{
    for (unsigned i = 0; i < STATS_COUNTERS; i++)
        to->counter[i] += cell_of_copy(&block->counter[i]);
    sum_durations(copy, &block->queue_wait, &to->histogram[STATS_HISTOGRAM_queue_wait]);
    sum_durations(copy, &block->sending, &to->histogram[STATS_HISTOGRAM_sending]);
    for (unsigned i = 0; i < copy->rows; i++)
        read_row(copy, atomic_load_explicit(&block->row[i], memory_order_relaxed), &to->site[i]);
    to->parts[to->part_count++] = (struct stats_part){
        .owner = atomic_load_explicit(&block->owner, memory_order_relaxed),
        .block = place,
        .requests = cell_of_copy(&block->counter[STATS_requests]),
    };
}

static const struct stats_header *header_of(const struct copy *copy)
{
    return (const struct stats_header *)(const void *)copy->bytes;
}

/* Counts the blocks and their rows, for which the snapshot is allocated. */
static bool survey(struct copy *copy, char why[STATS_WHY_MAX])
{
    size_t most = copy->taken / sizeof(struct stats_block);
    uint32_t place = atomic_load_explicit(&header_of(copy)->first_block, memory_order_relaxed);
    for (; place != 0 && !copy->damaged; copy->blocks++) {
        const struct stats_block *block = find_place(copy, place, sizeof(*block));
        if (!block || copy->blocks == most)
            return reject(why, "is damaged: its blocks do not end");
        for (unsigned i = copy->rows; i < STATS_SITES_MAX; i++)
            if (atomic_load_explicit(&block->row[i], memory_order_relaxed) != 0)
                copy->rows = i + 1;
        place = atomic_load_explicit(&block->next, memory_order_relaxed);
    }
    return true;
}

static bool add_blocks(struct copy *copy, struct stats_snapshot *to, char why[STATS_WHY_MAX])
{
    uint32_t place = atomic_load_explicit(&header_of(copy)->first_block, memory_order_relaxed);
    for (size_t i = 0; i < copy->blocks && !copy->damaged; i++) {
        const struct stats_block *block = find_place(copy, place, sizeof(*block));
        read_block(copy, place, block, to);
        place = atomic_load_explicit(&block->next, memory_order_relaxed);
    }
    return !copy->damaged || reject(why, "is damaged: it points outside of itself");
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

static bool copy_header(const struct stats_header *from, struct stats_snapshot *to,
                        char why[STATS_WHY_MAX])
{
    copy_string(to->weir, from->weir, sizeof(to->weir));
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
        to->generations[i] = from->generations[i];
        to->generations[i].model[sizeof(to->generations[i].model) - 1] = '\0';
        to->generations[i].sandbox[sizeof(to->generations[i].sandbox) - 1] = '\0';
        if (to->generations[i].accepts > STATS_ACCEPTS_EACH)
            to->generations[i].accepts = STATS_ACCEPTS_ONE;
        if (to->generations[i].serves > STATS_SERVES_PROCESS)
            to->generations[i].serves = STATS_SERVES_LOOP;
    }
    to->reloaded_s = from->reloaded_s;
    to->reload_failed = from->reload_failed != 0;
    copy_string(to->reload_error, from->reload_error, sizeof(to->reload_error));
    copy_moments(from, to);
    to->site_count = atomic_load_explicit(&from->site_count, memory_order_relaxed);
    if (to->site_count < 1 || to->site_count > STATS_SITES_MAX)
        return reject(why, "is damaged: it has an impossible number of sites");
    return true;
}

/* Allocates only what is in use. All 64 sites with their buckets would be a megabyte, and most
 * servers have one site. A reader may read ten times a second. */
static bool allocate_snapshot(const struct copy *copy, struct stats_snapshot *to,
                              char why[STATS_WHY_MAX])
{
    to->parts = calloc(copy->blocks + 1, sizeof(*to->parts));
    to->site = calloc(copy->rows, sizeof(*to->site));
    if (!to->parts || !to->site)
        return reject(why, "cannot be read: out of memory");
    for (unsigned i = 0; i < copy->rows; i++)
        copy_string(to->site[i].name, header_of(copy)->site[i], sizeof(to->site[i].name));
    return true;
}

static void derive(const struct copy *copy, struct stats_snapshot *s)
{
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        s->pair[i] = stats_counters_pair(i, s->counter);
    for (unsigned i = 0; i < copy->rows; i++)
        if (s->site[i].latency.count > 0)
            add_counts(&s->site[i].latency, &s->histogram[STATS_HISTOGRAM_latency]);
}

struct stats_snapshot *stats_snapshot_of(const char *bytes, size_t len, char why[STATS_WHY_MAX])
{
    const struct stats_header *header = (const struct stats_header *)(const void *)bytes;
    if (len < sizeof(*header)) {
        reject(why, "is not a statistics segment, or is truncated");
        return NULL;
    }
    struct copy copy = { .bytes = bytes };
    if (!is_ours(header, why))
        return NULL;
    copy.taken = atomic_load_explicit(&header->taken, memory_order_relaxed);
    if (copy.taken > len || copy.taken < sizeof(*header)) {
        reject(why, "is truncated");
        return NULL;
    }
    struct stats_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (!snapshot) {
        reject(why, "cannot be read: out of memory");
        return NULL;
    }
    snapshot->taken_bytes = copy.taken;
    bool good = copy_header(header, snapshot, why);
    copy.rows = snapshot->site_count;
    if (!good || !survey(&copy, why) || !allocate_snapshot(&copy, snapshot, why) ||
        !add_blocks(&copy, snapshot, why)) {
        stats_snapshot_free(snapshot);
        return NULL;
    }
    derive(&copy, snapshot);
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

/* ---- from the file ---- */

/* Reads up to `len` bytes, of which the first `got` are there already. Returns how many are there
 * then, or -errno. */
static ssize_t read_all(int fd, char *bytes, size_t got, size_t len)
{
    while (got < len) {
        ssize_t more = pread(fd, bytes + got, len - got, (off_t)got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    return (ssize_t)got;
}

/* Reads the header while the master is not writing it (a seqlock). After SEQUENCE_TRIES the copy is
 * taken as it is, because the master may have died while it wrote. */
static ssize_t read_header_file(int fd, struct stats_header *header)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t before, after;
        ssize_t len = read_all(fd, (char *)header, 0, sizeof(*header));
        if (len < (ssize_t)sizeof(*header))
            return len;
        before = atomic_load_explicit(&header->sequence, memory_order_relaxed);
        if (pread(fd, &after, sizeof(after), offsetof(struct stats_header, sequence)) !=
            (ssize_t)sizeof(after))
            return -EIO;
        if ((before % 2 == 0 && before == after) || tries == SEQUENCE_TRIES)
            return len;
        (void)sched_yield(); /* the master copies a few texts */
    }
}

/* Gives a copy of all that is taken into use; NULL with a sentence in `why`. */
static char *read_segment_file(int fd, size_t *ret_len, char why[STATS_WHY_MAX])
{
    struct stats_header header;
    ssize_t len = read_header_file(fd, &header);
    if (len < 0) {
        snprintf(why, STATS_WHY_MAX, "cannot be read: %s", strerror((int)-len));
        return NULL;
    }
    if ((size_t)len < sizeof(header)) {
        reject(why, "is not a statistics segment, or is truncated");
        return NULL;
    }
    if (!is_ours(&header, why))
        return NULL;
    uint64_t taken = atomic_load_explicit(&header.taken, memory_order_relaxed);
    if (taken < sizeof(header) || taken > STATS_SEGMENT_BYTES) {
        reject(why, "is damaged: it is larger than it can be");
        return NULL;
    }
    char *bytes = aligned_alloc(CACHE_LINE, (taken + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!bytes) {
        reject(why, "cannot be read: out of memory");
        return NULL;
    }
    memcpy(bytes, &header, sizeof(header)); /* a consistent header; the blocks are newer */
    len = read_all(fd, bytes, sizeof(header), taken);
    *ret_len = len < 0 ? 0 : (size_t)len;
    return bytes;
}

/* ---- from this process's memory ---- */

/* Atomic loads, because writers store meanwhile. What is loaded later is newer. */
static void copy_cells(char *to, const char *from, size_t len)
{
    uint64_t *into = (uint64_t *)(void *)to;
    const stats_cell *cells = (const stats_cell *)(const void *)from;
    for (size_t i = 0; i < len / sizeof(*cells); i++)
        into[i] = atomic_load_explicit(&cells[i], memory_order_acquire);
}

static void copy_header_here(const struct stats_segment *segment, char *bytes)
{
    const struct stats_header *from = stats_segment_header(segment);
    for (unsigned tries = 0; tries <= SEQUENCE_TRIES; tries++) {
        uint32_t before = atomic_load(&from->sequence);
        copy_cells(bytes, segment->base, sizeof(*from));
        if (before % 2 == 0 &&
            before == atomic_load_explicit(&from->sequence, memory_order_relaxed))
            return;
        (void)sched_yield();
    }
}

static char *copy_here(const struct stats_segment *segment, size_t *ret_len,
                       char why[STATS_WHY_MAX])
{
    const struct stats_header *header = stats_segment_header(segment);
    size_t len = atomic_load(&header->taken); /* a multiple of CACHE_LINE */
    char *bytes = aligned_alloc(CACHE_LINE, len);
    if (!bytes) {
        reject(why, "cannot be read: out of memory");
        return NULL;
    }
    copy_header_here(segment, bytes);
    copy_cells(bytes + sizeof(*header), segment->base + sizeof(*header), len - sizeof(*header));
    ((struct stats_header *)(void *)bytes)->taken = len;
    *ret_len = len;
    return bytes;
}

/* ---- either ---- */

static struct stats_snapshot *snapshot_of_copy(char *bytes, size_t len, char why[STATS_WHY_MAX])
{
    struct stats_snapshot *snapshot = bytes ? stats_snapshot_of(bytes, len, why) : NULL;
    free(bytes);
    return snapshot;
}

struct stats_snapshot *stats_snapshot_take(const char *name, char why[STATS_WHY_MAX])
{
    int fd = shm_open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) {
        snprintf(why, STATS_WHY_MAX, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    size_t len = 0;
    char *bytes = read_segment_file(fd, &len, why);
    os_file_close(fd);
    return snapshot_of_copy(bytes, len, why);
}

/* A segment with a descriptor is read through it. Memory that could not be allocated then reads as
 * zeros, without a fault. */
struct stats_snapshot *stats_snapshot_here(const struct stats_segment *segment,
                                           char why[STATS_WHY_MAX])
{
    size_t len = 0;
    char *bytes = segment->fd >= 0 ? read_segment_file(segment->fd, &len, why)
                                   : copy_here(segment, &len, why);
    return snapshot_of_copy(bytes, len, why);
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

size_t stats_snapshot_find_instance(uid_t uid, pid_t pid,
                                    struct stats_instance instances[STATS_INSTANCES_MAX])
{
    DIR *folder = opendir(STATS_FOLDER);
    size_t count = 0;
    const struct dirent *each;
    while (folder && count < STATS_INSTANCES_MAX && (each = readdir(folder))) {
        uint64_t its_uid, its_pid;
        if (!parse_segment_name(each->d_name, &its_uid, &its_pid) ||
            (pid != 0 ? its_pid != (uint64_t)pid : its_uid != uid))
            continue;
        instances[count++] = instance_of(each, its_uid, its_pid);
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
