/* SPDX-License-Identifier: MIT */
#include "stats/copy.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEQUENCE_TRIES = 1000,
    NEVER_BLOCKS = O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
                   O_NONBLOCK /* any user can make files there */
};

#define ROW_BYTES ((sizeof(struct stats_row) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE)
#define RUN_BYTES (STATS_RUN_BUCKETS * sizeof(stats_cell))

static bool reject(char why[STATS_WHY_MAX], const char *text)
{
    snprintf(why, STATS_WHY_MAX, "%s", text);
    return false;
}

static bool reject_for(char why[STATS_WHY_MAX], const char *text, int error)
{
    snprintf(why, STATS_WHY_MAX, "%s: %s", text, strerror(error));
    return false;
}

static bool reject_unopened(char why[STATS_WHY_MAX], int error)
{
    if (error != EACCES)
        return reject_for(why, "cannot be opened", error);
    return reject(why, "may only be read by the user that the server runs as, and root; try sudo");
}

/* ---- checking ---- */

void stats_copy_text(char *to, const char *from, size_t size)
{
    size_t len = 0;
    for (; len + 1 < size && from[len]; len++)
        to[len] = from[len] >= ' ' && from[len] <= '~' ? from[len] : '?';
    memset(to + len, 0, size - len);
}

bool stats_copy_is_head(struct span head, char why[STATS_WHY_MAX])
{
    const struct stats_header *header = (const struct stats_header *)(const void *)head.at;
    size_t common = offsetof(struct stats_header, master); /* the same in each version */
    if (head.len < common || memcmp(header->magic, STATS_MAGIC, sizeof(header->magic)) != 0)
        return reject(why, "is not a statistics segment, or is truncated");
    if (header->version != STATS_VERSION || header->layout != stats_counters_layout() ||
        header->header_bytes != sizeof(*header) ||
        header->block_bytes != sizeof(struct stats_block)) {
        char weir[sizeof(header->weir)];
        stats_copy_text(weir, header->weir, sizeof(weir));
        snprintf(why, STATS_WHY_MAX,
                 "is of another version of weir, %s; use `weir stats` of that version", weir);
        return false;
    }
    return head.len >= sizeof(*header) || reject(why, "is truncated");
}

struct survey {
    struct span arena;
    struct stats_survey found;
    bool *used; /* for each CACHE_LINE bytes of the arena: something was found there */
};

static void mark_used(struct survey *s, size_t offset, size_t size)
{
    bool *used = s->used + offset / CACHE_LINE;
    size_t lines = (size + CACHE_LINE - 1) / CACHE_LINE;
    s->found.damaged = s->found.damaged || memchr(used, 1, lines) != NULL;
    memset(used, 1, lines);
}

/* The bytes at a place; NULL where there are none, or none to read. */
static const void *visit_place(struct survey *s, const _Atomic uint32_t *place, size_t size)
{
    uint32_t offset = atomic_load_explicit(place, memory_order_relaxed);
    if (offset == 0)
        return NULL;
    if (offset % CACHE_LINE != 0 || offset < sizeof(struct stats_arena_header) ||
        offset > STATS_ARENA_BYTES - size) {
        s->found.damaged = true;
        return NULL;
    }
    if (offset + size > s->arena.len) {
        s->found.newer = offset + size > s->found.newer ? offset + size : s->found.newer;
        return NULL;
    }
    mark_used(s, offset, size);
    return s->arena.at + offset;
}

static void visit_durations(struct survey *s, const struct stats_durations *durations)
{
    for (unsigned run = 0; run < STATS_RUNS; run++)
        (void)visit_place(s, &durations->run[run], RUN_BYTES);
}

static void visit_block(struct survey *s, const struct stats_block *block)
{
    s->found.blocks++;
    visit_durations(s, &block->queue_wait);
    visit_durations(s, &block->disk_wait);
    visit_durations(s, &block->handshake);
    visit_durations(s, &block->sending);
    for (unsigned i = 0; i < STATS_SITES_MAX; i++) {
        const struct stats_row *row = visit_place(s, &block->row[i], ROW_BYTES);
        if (row)
            visit_durations(s, &row->latency);
        if (row && i >= s->found.rows)
            s->found.rows = i + 1;
    }
}

static void visit_arena(struct survey *s)
{
    const struct stats_arena_header *header = stats_copy_header(s->arena);
    uint64_t taken = atomic_load_explicit(&header->taken, memory_order_relaxed);
    s->found.damaged = taken % CACHE_LINE != 0 || taken > s->arena.len - sizeof(*header);
    const _Atomic uint32_t *place = &header->first_block;
    const struct stats_block *block;
    while (!s->found.damaged && (block = visit_place(s, place, sizeof(*block)))) {
        visit_block(s, block);
        place = &block->next;
    }
}

struct stats_survey stats_copy_survey(struct span arena)
{
    struct survey s = { .arena = arena };
    if (arena.len < sizeof(struct stats_arena_header)) {
        s.found.damaged = arena.len > 0;
        return s.found;
    }
    s.used = calloc(arena.len / CACHE_LINE + 1, sizeof(*s.used));
    if (s.used)
        visit_arena(&s);
    else
        s.found.damaged = true;
    free(s.used);
    return s.found;
}

/* ---- reading ---- */

/* Reads up to `len` bytes. Returns how many there are, or -errno. */
static ssize_t read_up_to(int fd, char *bytes, size_t len, size_t offset)
{
    size_t got = 0;
    while (got < len) {
        ssize_t more = pread(fd, bytes + got, len - got, (off_t)(offset + got));
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

/* Reads the head while no master writes it (a seqlock). After SEQUENCE_TRIES the copy is taken as
 * it is, because the master may have died while it wrote. */
static ssize_t read_head(int fd, char *head)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t before = 0, after = 1;
        const size_t at = offsetof(struct stats_header, sequence);
        ssize_t len = read_up_to(fd, (char *)&before, sizeof(before), at);
        atomic_thread_fence(memory_order_acquire);
        if (len >= 0)
            len = read_up_to(fd, head, sizeof(struct stats_header), 0);
        atomic_thread_fence(memory_order_acquire);
        if (len < (ssize_t)sizeof(struct stats_header) ||
            read_up_to(fd, (char *)&after, sizeof(after), at) < 0)
            return len;
        if ((before % 2 == 0 && before == after) || tries == SEQUENCE_TRIES)
            return len;
        (void)sched_yield(); /* the master copies a few texts */
    }
}

static bool copy_head(int fd, struct stats_copy *copy, char why[STATS_WHY_MAX])
{
    size_t size = (sizeof(struct stats_header) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    char *head = aligned_alloc(CACHE_LINE, size);
    if (!head)
        return reject(why, "cannot be read: out of memory");
    ssize_t len = read_head(fd, head);
    copy->head = span_of(head, len > 0 ? (size_t)len : 0);
    return len < 0 ? reject_for(why, "cannot be read", (int)-len)
                   : stats_copy_is_head(copy->head, why);
}

/* How many bytes of the file may be read: no more than the memory that it has. 0: it has none, or
 * is no file. */
static uint64_t readable_bytes(int fd)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return 0;
    uint64_t size = (uint64_t)info.st_size, allocated = (uint64_t)info.st_blocks * 512;
    return size < allocated ? size : allocated;
}

/* Of an arena that claims more than it has, the copy is the header alone: stats_copy_survey finds
 * the arena damaged. */
struct span stats_copy_arena(int fd)
{
    struct stats_arena_header header;
    if (read_up_to(fd, (char *)&header, sizeof(header), 0) != (ssize_t)sizeof(header))
        return span_of(NULL, 0);
    uint64_t most = readable_bytes(fd);
    most = most < STATS_ARENA_BYTES ? most : STATS_ARENA_BYTES;
    uint64_t taken = atomic_load_explicit(&header.taken, memory_order_relaxed);
    if (most < sizeof(header) || taken > most - sizeof(header))
        taken = 0;
    size_t len = sizeof(header) + (size_t)taken;
    char *bytes = aligned_alloc(CACHE_LINE, (len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    if (!bytes)
        return span_of(NULL, 0);
    memcpy(bytes, &header, sizeof(header));
    ssize_t got = read_up_to(fd, bytes + sizeof(header), (size_t)taken, sizeof(header));
    return span_of(bytes, sizeof(header) + (got > 0 ? (size_t)got : 0));
}

static void drop_bytes(struct span bytes)
{
    free((void *)(uintptr_t)bytes.at);
}

/* ---- all of a segment ---- */

static bool copy_arenas(int folder_fd, const struct stats_segment *segment, struct stats_copy *copy,
                        char why[STATS_WHY_MAX])
{
    const struct stats_header *header = (const struct stats_header *)(const void *)copy->head.at;
    uint32_t count = atomic_load_explicit(&header->arena_count, memory_order_relaxed);
    if (count > STATS_ARENAS_MAX)
        return reject(why, "is damaged: it has an impossible number of arenas");
    copy->arena = calloc(count + 1, sizeof(*copy->arena));
    if (!copy->arena)
        return reject(why, "cannot be read: out of memory");
    copy->arena_count = count;
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        int fd = segment && i < segment->arena_fd_count ? segment->arena_fds[i] : -1;
        int own = fd < 0 && folder_fd >= 0 ? openat(folder_fd, name, NEVER_BLOCKS) : -1;
        if (fd >= 0 || own >= 0)
            copy->arena[i] = stats_copy_arena(fd >= 0 ? fd : own);
        os_file_close(own);
    }
    return true;
}

bool stats_copy_take(const char *name, struct stats_copy *ret_copy, char why[STATS_WHY_MAX])
{
    char path[STATS_PATH_MAX];
    *ret_copy = (struct stats_copy){ 0 };
    snprintf(path, sizeof(path), STATS_FOLDER "%s", name);
    int folder_fd = open(path, NEVER_BLOCKS | O_DIRECTORY);
    if (folder_fd < 0)
        return errno == ENOTDIR
                   ? reject(why, "is of another version of weir, or is not a statistics segment")
                   : reject_unopened(why, errno);
    int head_fd = openat(folder_fd, STATS_HEAD, NEVER_BLOCKS);
    bool good = head_fd < 0 ? reject_unopened(why, errno)
                            : copy_head(head_fd, ret_copy, why) &&
                                  copy_arenas(folder_fd, NULL, ret_copy, why);
    os_file_close(head_fd);
    os_file_close(folder_fd);
    return good;
}

bool stats_copy_here(const struct stats_segment *segment, struct stats_copy *ret_copy,
                     char why[STATS_WHY_MAX])
{
    *ret_copy = (struct stats_copy){ 0 };
    return copy_head(segment->head_fd, ret_copy, why) &&
           copy_arenas(segment->folder_fd, segment, ret_copy, why);
}

void stats_copy_done(struct stats_copy *copy)
{
    drop_bytes(copy->head);
    for (unsigned i = 0; i < copy->arena_count; i++)
        drop_bytes(copy->arena[i]);
    free(copy->arena);
    *copy = (struct stats_copy){ 0 };
}
