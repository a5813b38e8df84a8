/* SPDX-License-Identifier: MIT */
#include "stats/segment.h"

#include "base/num.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/usage.h"
#include "stats/arena.h"
#include "stats/copy.h"
#include "stats/sequence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(STATS_ARENA_BYTES % CACHE_LINE == 0, "the end is a place");
static_assert(sizeof(struct stats_row) % sizeof(uint64_t) == 0, "cells of rows are aligned");

#define SEGMENT_NONE \
    { \
        .fd = -1, .arena = STATS_ARENA_NONE, .head_fd = -1, .folder_fd = -1 \
    }

void stats_segment_name(char out[STATS_NAME_MAX], uid_t uid, pid_t pid)
{
    snprintf(out, STATS_NAME_MAX, "/weir-%u-%d", (unsigned)uid, (int)pid);
}

/* ---- folders ---- */

static void folder_path(char out[STATS_PATH_MAX], const char *name)
{
    snprintf(out, STATS_PATH_MAX, STATS_FOLDER "%s", name);
}

/* Opens the folder of a segment. Any user can make folders there, so it has to be this user's. */
static int open_folder(const char *name)
{
    char path[STATS_PATH_MAX];
    struct stat info;
    folder_path(path, name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &info) < 0 ? -errno : info.st_uid != geteuid() ? -EPERM : 0;
    if (rc < 0)
        os_file_close(fd);
    return rc < 0 ? rc : fd;
}

/* Removes the folder with its files; an earlier version of weir had a file in its place. */
static void remove_folder(const char *name)
{
    char path[STATS_PATH_MAX];
    folder_path(path, name);
    int fd = open_folder(name);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *each;
    while (folder && (each = readdir(folder)))
        if (each->d_name[0] != '.')
            (void)unlinkat(fd, each->d_name, 0);
    if (folder)
        closedir(folder);
    else
        os_file_close(fd);
    (void)(fd >= 0 ? rmdir(path) : unlink(path)); /* fails if it is another user's, or gone */
}

/* A master holds a lock on the head as long as it lives. Its process id says nothing in another PID
 * namespace. */
static int hold_head(const struct stats_segment *segment)
{
    return flock(segment->head_fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;
}

static void remove_unless_held(const char *name)
{
    int folder = open_folder(name);
    int head = folder < 0 ? -1 : openat(folder, STATS_HEAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool held = head >= 0 && flock(head, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    os_file_close(head);
    os_file_close(folder);
    if (!held)
        remove_folder(name);
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
            os_process_exists((pid_t)pid))
            continue;
        stats_segment_name(name, geteuid(), (pid_t)pid);
        remove_unless_held(name);
    }
    closedir(folder);
}

/* ---- creating ---- */

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
    char name[40];
    for (unsigned i = 0; i < STATS_NAMED; i++)
        describe_entry(header, i, stats_counters[i].kind == STATS_KIND_GAUGE ? "gauge" : "counter",
                       stats_counters[i].unit, stats_counters[i].name, stats_counters[i].sentence);
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        snprintf(name, sizeof(name), "status_%u", stats_statuses[i]);
        describe_entry(header, STATS_STATUS_FIRST + i, "counter", "answers", name,
                       "Answers with this status.");
        snprintf(name, sizeof(name), "unreadable_%u", stats_statuses[i]);
        describe_entry(header, STATS_UNREADABLE_FIRST + i, "counter", "requests", name,
                       "Answers with this status to requests that could not be read.");
    }
    for (unsigned i = 0; i < STATS_FAULTS; i++) {
        snprintf(name, sizeof(name), "fault_%s", stats_faults[i].name);
        describe_entry(header, STATS_FAULT_FIRST + i, "counter", "requests", name,
                       stats_faults[i].sentence);
    }
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++) {
        snprintf(name, sizeof(name), "http2_fault_%s", stats_http2_faults[i].name);
        describe_entry(header, STATS_HTTP2_FAULT_FIRST + i, "counter", "times", name,
                       stats_http2_faults[i].sentence);
    }
}

static void fill_header(struct stats_header *header)
{
    memcpy(header->magic, STATS_MAGIC, sizeof(header->magic));
    header->version = STATS_VERSION;
    header->header_bytes = sizeof(*header);
    header->layout = stats_counters_layout();
    header->arena_bytes = STATS_ARENA_BYTES;
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
    describe_all(header);
}

static void belong_to_this_process(const struct stats_segment *segment)
{
    struct stats_header *header = segment->header;
    atomic_store(&header->master, (int32_t)getpid());
    atomic_store(&header->master_started, os_usage_started(getpid()));
    stats_segment_heartbeat(segment, os_clock_now_ns());
}

static int map_head(struct stats_segment *segment, int fd, bool writable)
{
    char *base = NULL;
    int rc = stats_arena_map(fd, sizeof(struct stats_header), writable, &base);
    if (rc == 0)
        segment->header = (struct stats_header *)(void *)base;
    return rc;
}

/* Only the records of arenas that exist have memory. */
static int open_head(struct stats_segment *segment)
{
    segment->head_fd = segment->folder_fd >= 0 ? openat(segment->folder_fd, STATS_HEAD,
                                                        O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                                               : memfd_create("weir", MFD_CLOEXEC);
    if (segment->head_fd < 0)
        return -errno;
    int rc = fchmod(segment->head_fd, 0600) < 0 ? -errno : hold_head(segment);
    if (rc == 0 && ftruncate(segment->head_fd, sizeof(struct stats_header)) < 0)
        rc = -errno;
    if (rc == 0)
        rc = stats_arena_allocate(segment->head_fd, 0, offsetof(struct stats_header, arena));
    return rc == 0 ? map_head(segment, segment->head_fd, true) : rc;
}

/* A folder of this name was left by a dead process with the same id, or belongs to a master in
 * another PID namespace. */
static int create_named(struct stats_segment *segment)
{
    char path[STATS_PATH_MAX];
    stats_segment_name(segment->name, geteuid(), getpid());
    remove_unless_held(segment->name);
    folder_path(path, segment->name);
    if (mkdir(path, 0700) < 0) {
        segment->name[0] = '\0';
        return -errno;
    }
    segment->folder_fd = open_folder(segment->name);
    return segment->folder_fd < 0 ? segment->folder_fd : open_head(segment);
}

/* Maps the arena. In a worker, `fd` is another descriptor than the master's: they share nothing. */
static int use_arena(struct stats_segment *segment, unsigned arena)
{
    if (arena >= segment->arena_fd_count)
        return -ENOMEM;
    segment->fd = stats_arena_reopen(segment->arena_fds[arena], O_RDWR);
    int rc = segment->fd < 0 ? segment->fd : 0;
    if (rc == 0)
        rc = stats_arena_map(segment->fd, STATS_ARENA_BYTES, true, &segment->base);
    segment->arena = arena;
    if (rc == 0 && !stats_arena_adopt(segment))
        rc = -EPROTO;
    return rc;
}

static void leave_arena(struct stats_segment *segment)
{
    if (segment->base)
        (void)munmap(segment->base, STATS_ARENA_BYTES);
    os_file_close(segment->fd);
    segment->base = NULL;
    segment->fd = -1;
    segment->arena = STATS_ARENA_NONE;
}

/* The arena of a master. Without one, what only the master counts is lost. */
static void use_own_arena(struct stats_segment *segment)
{
    unsigned arena = stats_arena_claim(segment, true);
    if (arena != STATS_ARENA_NONE && use_arena(segment, arena) < 0)
        leave_arena(segment);
}

int stats_segment_create(struct stats_segment *segment, int *ret_why)
{
    remove_dead_segments();
    *segment = (struct stats_segment)SEGMENT_NONE;
    int rc = *ret_why = create_named(segment);
    if (rc < 0) {
        stats_segment_remove(segment);
        rc = open_head(segment);
    }
    if (rc < 0) {
        stats_segment_remove(segment);
        return rc;
    }
    fill_header(segment->header);
    belong_to_this_process(segment);
    use_own_arena(segment);
    return 0;
}

static int check_head(const struct stats_segment *segment)
{
    char why[STATS_WHY_MAX];
    struct stat info;
    if (fstat(segment->head_fd, &info) < 0)
        return -errno;
    struct span head = span_of((const char *)segment->header, sizeof(*segment->header));
    return info.st_size == sizeof(*segment->header) && stats_copy_is_head(head, why) ? 0 : -EPROTO;
}

int stats_segment_borrow(struct stats_segment *segment, const char *name)
{
    *segment = (struct stats_segment)SEGMENT_NONE;
    segment->folder_fd = open_folder(name);
    if (segment->folder_fd < 0)
        return segment->folder_fd == -ENOTDIR ? -EPROTO : segment->folder_fd;
    segment->head_fd = openat(segment->folder_fd, STATS_HEAD, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int rc = segment->head_fd < 0 ? -errno : hold_head(segment);
    if (rc == 0)
        rc = map_head(segment, segment->head_fd, true);
    if (rc == 0)
        rc = check_head(segment);
    if (rc < 0) {
        stats_segment_leave(segment);
        return rc;
    }
    snprintf(segment->name, sizeof(segment->name), "%s", name);
    use_own_arena(segment);
    return 0;
}

bool stats_segment_is_own(const struct stats_segment *segment)
{
    return segment->header && segment->header->master == (int32_t)getpid();
}

/* The name comes last. So a master that dies in between has left the segment under its own name, or
 * under that of the master before, who finds it by both. */
void stats_segment_own(struct stats_segment *segment)
{
    char from[STATS_PATH_MAX], to[STATS_PATH_MAX], name[STATS_NAME_MAX];
    stats_segment_name(name, geteuid(), segment->header->master);
    folder_path(from, name);
    belong_to_this_process(segment);
    stats_segment_name(name, geteuid(), getpid());
    remove_unless_held(name);
    folder_path(to, name);
    if (rename(from, to) == 0)
        memcpy(segment->name, name, sizeof(name));
}

/* ---- ending, and changing hands ---- */

static void close_files(struct stats_segment *segment)
{
    for (unsigned i = 0; i < segment->arena_fd_count; i++)
        os_file_close(segment->arena_fds[i]);
    free(segment->arena_fds);
    segment->arena_fds = NULL;
    segment->arena_fd_count = 0;
    os_file_close(segment->head_fd);
    os_file_close(segment->folder_fd);
    segment->head_fd = segment->folder_fd = -1;
}

void stats_segment_leave(struct stats_segment *segment)
{
    leave_arena(segment);
    if (segment->header)
        (void)munmap(segment->header, sizeof(*segment->header));
    close_files(segment);
    *segment = (struct stats_segment)SEGMENT_NONE;
}

void stats_segment_remove(struct stats_segment *segment)
{
    bool mine = !segment->header || stats_segment_is_own(segment);
    if (segment->header)
        stats_arena_give(segment, segment->arena, 0); /* a later master continues in it */
    if (segment->name[0] && mine)
        remove_folder(segment->name);
    stats_segment_leave(segment);
}

/* Maps the head again, so that no right to write it is left. */
static int only_read_head(struct stats_segment *segment)
{
    leave_arena(segment);
    (void)munmap(segment->header, sizeof(*segment->header));
    segment->header = NULL;
    int fd = stats_arena_reopen(segment->head_fd, O_RDONLY);
    int rc = fd < 0 ? fd : map_head(segment, fd, false);
    os_file_close(segment->head_fd);
    segment->head_fd = fd < 0 ? -1 : fd;
    return rc;
}

int stats_segment_enter(struct stats_segment *segment, unsigned arena)
{
    int rc = only_read_head(segment);
    if (rc == 0 && use_arena(segment, arena) < 0)
        leave_arena(segment);
    if (rc < 0)
        stats_segment_leave(segment);
    else
        close_files(segment);
    return rc;
}

int stats_segment_only_read(struct stats_segment *segment)
{
    int rc = only_read_head(segment);
    for (unsigned i = 0; i < segment->arena_fd_count; i++) {
        int own = segment->arena_fds[i];
        segment->arena_fds[i] = own < 0 ? -1 : stats_arena_reopen(own, O_RDONLY);
        os_file_close(own);
    }
    os_file_close(segment->folder_fd);
    segment->folder_fd = -1;
    if (rc < 0)
        stats_segment_leave(segment);
    return rc;
}

/* ---- of any process ---- */

enum stats_state stats_segment_state(const struct stats_segment *segment)
{
    uint32_t state = atomic_load(&segment->header->state);
    return state < STATS_STATES ? (enum stats_state)state : STATS_STARTING;
}

unsigned stats_segment_site(const struct stats_segment *segment, const char *name)
{
    const struct stats_header *header = segment->header;
    char text[STATS_SITE_NAME_MAX];
    snprintf(text, sizeof(text), "%s", name);
    unsigned count = atomic_load(&header->site_count);
    for (unsigned i = 1; i < count; i++)
        if (strcmp(header->site[i], text) == 0)
            return i;
    return count == STATS_SITES_MAX ? count - 1 : 0;
}

/* ---- written by the master ---- */

void stats_segment_heartbeat(const struct stats_segment *segment, uint64_t now_ns)
{
    if (segment->header)
        atomic_store_explicit(&segment->header->heartbeat_ns, now_ns, memory_order_relaxed);
}

void stats_segment_set_state(const struct stats_segment *segment, enum stats_state state)
{
    struct stats_header *header = segment->header;
    if (stats_segment_is_own(segment))
        atomic_store(&header->state, (uint32_t)state);
}

void stats_segment_add_site(const struct stats_segment *segment, const char *name)
{
    struct stats_header *header = segment->header;
    unsigned count = atomic_load(&header->site_count);
    if (count == STATS_SITES_MAX || stats_segment_site(segment, name) > 0)
        return;
    stats_sequence_begin(header);
    snprintf(header->site[count], sizeof(header->site[count]), "%s",
             count == STATS_SITES_MAX - 1 ? "(others)" : name);
    atomic_store(&header->site_count, count + 1);
    stats_sequence_end(header);
}

void stats_segment_generation(const struct stats_segment *segment,
                              const struct stats_generation *generation)
{
    if (!segment->header)
        return;
    struct stats_header *header = segment->header;
    stats_sequence_begin(header);
    uint64_t number = ++header->generation;
    header->generations[number % STATS_GENERATIONS_MAX] = *generation;
    header->generations[number % STATS_GENERATIONS_MAX].number = number;
    stats_sequence_end(header);
}

void stats_segment_certificates(const struct stats_segment *segment,
                                const struct stats_certificate *certificates, size_t count)
{
    struct stats_header *header = segment->header;
    if (!header)
        return;
    stats_sequence_begin(header);
    header->certificate_count = count;
    for (size_t i = 0; i < count; i++)
        header->certificate[i] = certificates[i];
    stats_sequence_end(header);
}

void stats_segment_add_moment(const struct stats_segment *segment,
                              const struct stats_moment *moment)
{
    struct stats_header *header = segment->header;
    stats_sequence_begin(header);
    header->moment[header->moments++ % STATS_MOMENTS] = *moment;
    stats_sequence_end(header);
}

void stats_segment_reloaded(const struct stats_segment *segment, const char *error, int64_t now_s)
{
    if (!segment->header)
        return;
    struct stats_header *header = segment->header;
    stats_sequence_begin(header);
    header->reloaded_s = now_s;
    header->reload_failed = error != NULL;
    snprintf(header->reload_error, sizeof(header->reload_error), "%s", error ? error : "");
    stats_sequence_end(header);
}
