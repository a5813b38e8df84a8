/* SPDX-License-Identifier: MIT */
#include "stats/segment.h"

#include "base/num.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(STATS_SEGMENT_BYTES % CACHE_LINE == 0, "the end is a place");
static_assert(sizeof(struct stats_row) % sizeof(uint64_t) == 0, "cells of rows are aligned");

void stats_segment_name(char out[STATS_NAME_MAX], uid_t uid, pid_t pid)
{
    snprintf(out, STATS_NAME_MAX, "/weir-%u-%d", (unsigned)uid, (int)pid);
}

/* ---- segments of dead servers ---- */

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

static void remove_dead_segments(void)
{
    char prefix[STATS_NAME_MAX];
    int len = snprintf(prefix, sizeof(prefix), "weir-%u-", (unsigned)geteuid());
    DIR *folder = opendir(STATS_FOLDER);
    if (!folder)
        return;
    const struct dirent *each;
    while ((each = readdir(folder))) {
        if (strncmp(each->d_name, prefix, (size_t)len) != 0)
            continue;
        char name[STATS_NAME_MAX];
        uint64_t pid;
        if (!num_parse_u64(span_text(each->d_name + len), &pid) || pid == 0 || pid > INT_MAX ||
            is_alive((pid_t)pid))
            continue;
        stats_segment_name(name, geteuid(), (pid_t)pid);
        (void)shm_unlink(name); /* fails if it is another user's, or gone */
    }
    closedir(folder);
}

/* ---- creating ---- */

static int allocate(int fd, uint64_t offset, size_t bytes)
{
    int rc;
    do
        rc = fd < 0 ? 0 : posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (rc == EINTR);
    return -rc;
}

static int map_segment(struct stats_segment *segment)
{
    int flags = segment->fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *base = mmap(NULL, STATS_SEGMENT_BYTES, PROT_READ | PROT_WRITE, flags, segment->fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    segment->base = base;
    return 0;
}

static void describe_entry(struct stats_header *header, unsigned index, const char *kind,
                           const char *unit, const char *name, const char *sentence)
{
    struct stats_entry *entry = &header->entry[index];
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    snprintf(entry->kind, sizeof(entry->kind), "%s", kind);
    snprintf(entry->unit, sizeof(entry->unit), "%s", unit);
    snprintf(entry->sentence, sizeof(entry->sentence), "%s", sentence);
    entry->offset = (uint32_t)(offsetof(struct stats_block, counter) + index * sizeof(stats_cell));
}

static void describe_all(struct stats_header *header)
{
    for (unsigned i = 0; i < STATS_NAMED; i++)
        describe_entry(header, i, stats_counters[i].kind == STATS_KIND_GAUGE ? "gauge" : "counter",
                       stats_counters[i].unit, stats_counters[i].name, stats_counters[i].sentence);
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "status_%u", stats_statuses[i]);
        describe_entry(header, STATS_STATUS_FIRST + i, "counter", "answers", name,
                       "Answers with this status.");
        snprintf(name, sizeof(name), "unreadable_%u", stats_statuses[i]);
        describe_entry(header, STATS_UNREADABLE_FIRST + i, "counter", "requests", name,
                       "Answers with this status to requests that could not be read.");
    }
    for (unsigned i = 0; i < STATS_FAULTS; i++) {
        char name[40];
        snprintf(name, sizeof(name), "fault_%s", stats_faults[i].name);
        describe_entry(header, STATS_FAULT_FIRST + i, "counter", "requests", name,
                       stats_faults[i].sentence);
    }
}

static void fill_header(struct stats_header *header)
{
    memcpy(header->magic, STATS_MAGIC, sizeof(header->magic));
    header->version = STATS_VERSION;
    header->header_bytes = sizeof(*header);
    header->layout = stats_counters_layout();
    header->segment_bytes = STATS_SEGMENT_BYTES;
    header->block_bytes = sizeof(struct stats_block);
    header->entry_count = STATS_COUNTERS;
    header->entry_bytes = sizeof(struct stats_entry);
    header->row_offset = offsetof(struct stats_block, row);
    header->unit_bits = STATS_UNIT_BITS;
    header->bits = STATS_BITS;
    header->runs = STATS_RUNS;
    header->sites_max = STATS_SITES_MAX;
    snprintf(header->weir, sizeof(header->weir), "%s", WEIR_VERSION);
    header->started_s = os_clock_wall_s();
    atomic_store(&header->site_count, 1);
    atomic_store(&header->taken, (sizeof(*header) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    describe_all(header);
}

static void belong_to_this_process(const struct stats_segment *segment)
{
    struct stats_header *header = stats_segment_header(segment);
    atomic_store(&header->master, (int32_t)getpid());
    atomic_store(&header->master_started, os_usage_started(getpid()));
    stats_segment_heartbeat(segment, os_clock_now_ns());
}

/* An existing file of this name was left by a dead process with the same id. */
static int open_named(struct stats_segment *segment)
{
    stats_segment_name(segment->name, geteuid(), getpid());
    (void)shm_unlink(segment->name);
    segment->fd = shm_open(segment->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (segment->fd < 0)
        return -errno;
    int rc = ftruncate(segment->fd, STATS_SEGMENT_BYTES) < 0 ? -errno : 0;
    if (rc == 0)
        rc = allocate(segment->fd, 0, sizeof(struct stats_header));
    return rc == 0 ? map_segment(segment) : rc;
}

int stats_segment_create(struct stats_segment *segment, int *ret_why)
{
    remove_dead_segments();
    *segment = (struct stats_segment){ .fd = -1 };
    int rc = *ret_why = open_named(segment);
    if (rc < 0) {
        stats_segment_remove(segment);
        rc = map_segment(segment);
    }
    if (rc < 0)
        return rc;
    fill_header(stats_segment_header(segment));
    belong_to_this_process(segment);
    return 0;
}

int stats_segment_borrow(struct stats_segment *segment, const char *name)
{
    *segment = (struct stats_segment){ .fd = shm_open(name, O_RDWR | O_CLOEXEC, 0) };
    if (segment->fd < 0)
        return -errno;
    struct stat info;
    int rc = fstat(segment->fd, &info) < 0 ? -errno : 0;
    if (rc == 0 && (info.st_uid != geteuid() || info.st_size != STATS_SEGMENT_BYTES))
        rc = -EPROTO;
    if (rc == 0)
        rc = map_segment(segment);
    const struct stats_header *header = stats_segment_header(segment);
    if (rc == 0 && (memcmp(header->magic, STATS_MAGIC, sizeof(header->magic)) != 0 ||
                    header->version != STATS_VERSION || header->layout != stats_counters_layout() ||
                    header->header_bytes != sizeof(*header) ||
                    header->block_bytes != sizeof(struct stats_block)))
        rc = -EPROTO;
    if (rc < 0)
        stats_segment_remove(segment);
    else
        snprintf(segment->name, sizeof(segment->name), "%s", name);
    return rc;
}

void stats_segment_own(struct stats_segment *segment)
{
    char from[STATS_PATH_MAX], to[STATS_PATH_MAX], name[STATS_NAME_MAX];
    stats_segment_name(name, geteuid(), getpid());
    snprintf(from, sizeof(from), STATS_FOLDER "%s", segment->name);
    snprintf(to, sizeof(to), STATS_FOLDER "%s", name);
    if (rename(from, to) == 0)
        memcpy(segment->name, name, sizeof(name));
    belong_to_this_process(segment);
}

void stats_segment_remove(struct stats_segment *segment)
{
    bool mine = !segment->base || stats_segment_header(segment)->master == (int32_t)getpid();
    if (segment->name[0] && mine)
        (void)shm_unlink(segment->name);
    if (segment->base)
        (void)munmap(segment->base, STATS_SEGMENT_BYTES);
    os_file_close(segment->fd);
    *segment = (struct stats_segment){ .fd = -1 };
}

uint32_t stats_segment_take(const struct stats_segment *segment, size_t bytes)
{
    struct stats_header *header = stats_segment_header(segment);
    size_t size = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    uint64_t place = atomic_load(&header->taken);
    do {
        if (size > STATS_SEGMENT_BYTES - place || atomic_load(&header->full))
            return 0;
    } while (!atomic_compare_exchange_weak(&header->taken, &place, place + size));
    if (allocate(segment->fd, place, size) < 0) {
        atomic_store(&header->full, true);
        return 0;
    }
    return (uint32_t)place;
}

/* ---- written by the master ---- */

void stats_segment_heartbeat(const struct stats_segment *segment, uint64_t now_ns)
{
    if (segment->base)
        atomic_store_explicit(&stats_segment_header(segment)->heartbeat_ns, now_ns,
                              memory_order_relaxed);
}

void stats_segment_set_state(const struct stats_segment *segment, enum stats_state state)
{
    struct stats_header *header = stats_segment_header(segment);
    if (header && header->master == (int32_t)getpid())
        atomic_store(&header->state, (uint32_t)state);
}

enum stats_state stats_segment_state(const struct stats_segment *segment)
{
    uint32_t state = atomic_load(&stats_segment_header(segment)->state);
    return state < STATS_STATES ? (enum stats_state)state : STATS_STARTING;
}

int stats_segment_only_read(struct stats_segment *segment)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", segment->fd);
    int fd = segment->fd >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (segment->fd >= 0 && fd < 0)
        return -errno;
    os_file_close(segment->fd);
    segment->fd = fd;
    return mprotect(segment->base, STATS_SEGMENT_BYTES, PROT_READ) < 0 ? -errno : 0;
}

static void begin_write(struct stats_header *header)
{
    atomic_fetch_add(&header->sequence, 1); /* no later store moves before this one */
}

static void end_write(struct stats_header *header)
{
    atomic_fetch_add_explicit(&header->sequence, 1, memory_order_release);
}

unsigned stats_segment_site(const struct stats_segment *segment, const char *name)
{
    if (!segment->base)
        return 0;
    struct stats_header *header = stats_segment_header(segment);
    unsigned count = atomic_load(&header->site_count);
    char text[STATS_SITE_NAME_MAX];
    snprintf(text, sizeof(text), "%s", name);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(header->site[i], text) == 0)
            return i;
    if (count == STATS_SITES_MAX - 1)
        snprintf(text, sizeof(text), "(others)");
    if (count == STATS_SITES_MAX)
        return count - 1;
    begin_write(header);
    memcpy(header->site[count], text, sizeof(text));
    atomic_store(&header->site_count, count + 1);
    end_write(header);
    return count;
}

void stats_segment_generation(const struct stats_segment *segment,
                              const struct stats_generation *generation)
{
    if (!segment->base)
        return;
    struct stats_header *header = stats_segment_header(segment);
    begin_write(header);
    uint64_t number = ++header->generation;
    header->generations[number % STATS_GENERATIONS_MAX] = *generation;
    header->generations[number % STATS_GENERATIONS_MAX].number = number;
    end_write(header);
}

void stats_segment_add_moment(const struct stats_segment *segment,
                              const struct stats_moment *moment)
{
    struct stats_header *header = stats_segment_header(segment);
    begin_write(header);
    header->moment[header->moments++ % STATS_MOMENTS] = *moment;
    end_write(header);
}

void stats_segment_reloaded(const struct stats_segment *segment, const char *error, int64_t now_s)
{
    if (!segment->base)
        return;
    struct stats_header *header = stats_segment_header(segment);
    begin_write(header);
    header->reloaded_s = now_s;
    header->reload_failed = error != NULL;
    snprintf(header->reload_error, sizeof(header->reload_error), "%s", error ? error : "");
    end_write(header);
}
