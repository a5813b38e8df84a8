/* SPDX-License-Identifier: MIT
 *
 * The sums that a process left open in an arena: for each block the difference up - down of a
 * pair. A living process counts with the difference that its blocks had when it got them. A child
 * of a `fork` worker that has died is such a process. Only the sum over the blocks has a meaning,
 * because a connection that moves between threads rises in one block and falls in another. The
 * record of the arena has the sum that was ended already.
 */
#include "stats/arena.h"

#include "os/file.h"
#include "os/process.h"
#include "stats/blocks.h"
#include "stats/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* More open connections than a process can have. A worker that claims them is not believed. */
enum { OPEN_MAX_CLAIMED = 1 << 24 };

/* ---- memory ---- */

int stats_arena_reopen(int fd, int rights)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int other = open(path, rights | O_CLOEXEC);
    return other < 0 ? -errno : other;
}

int stats_arena_allocate(int fd, uint64_t offset, size_t bytes)
{
    int rc;
    do
        rc = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (rc == EINTR);
    return -rc;
}

int stats_arena_map(int fd, size_t bytes, bool writable, char **ret_base)
{
    int rights = PROT_READ | (writable ? PROT_WRITE : 0);
    void *base = mmap(NULL, bytes, rights, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    *ret_base = base;
    return 0;
}

/* Memory is allocated first, so that `taken` covers bytes that are there. It is zeroed, because an
 * earlier process may have written behind what it took. */
uint32_t stats_arena_take(const struct stats_segment *segment, size_t bytes)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    const uint64_t most = STATS_ARENA_BYTES - sizeof(*header);
    size_t size = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    uint64_t taken = atomic_load(&header->taken);
    do {
        if (taken > most || size > most - taken || atomic_load(&header->full))
            return 0;
        if (stats_arena_allocate(segment->fd, sizeof(*header) + taken, size) < 0) {
            atomic_store(&header->full, true);
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&header->taken, &taken, taken + size));
    memset(segment->base + sizeof(*header) + taken, 0, size);
    return (uint32_t)(sizeof(*header) + taken);
}

/* ---- the files of arenas ---- */

int stats_arena_add_file(struct stats_segment *segment, unsigned arena, int fd)
{
    if (arena >= segment->arena_fd_count) {
        int *grown = realloc(segment->arena_fds, (arena + 1) * sizeof(*grown));
        if (!grown) {
            os_file_close(fd);
            return -ENOMEM;
        }
        segment->arena_fds = grown;
        while (segment->arena_fd_count <= arena)
            grown[segment->arena_fd_count++] = -1;
    }
    segment->arena_fds[arena] = fd;
    return 0;
}

/* Creates the file of an arena. With a name, -EEXIST: another master has just created it. */
static int create_file(struct stats_segment *segment, unsigned arena)
{
    char name[16];
    snprintf(name, sizeof(name), "%u", arena);
    int fd = segment->folder_fd >= 0
                 ? openat(segment->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                 : memfd_create("weir", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fchmod(fd, 0600) < 0 ? -errno : 0;
    if (rc == 0)
        rc = stats_arena_allocate(fd, 0, sizeof(struct stats_arena_header));
    if (rc == 0)
        return stats_arena_add_file(segment, arena, fd);
    if (segment->folder_fd >= 0)
        (void)unlinkat(segment->folder_fd, name, 0);
    os_file_close(fd);
    return rc;
}

void stats_arena_open_all(struct stats_segment *segment)
{
    uint32_t count = atomic_load(&segment->header->arena_count);
    for (unsigned i = 0; i < count && segment->folder_fd >= 0; i++) {
        char name[16];
        if (i < segment->arena_fd_count && segment->arena_fds[i] >= 0)
            continue;
        snprintf(name, sizeof(name), "%u", i);
        int fd = openat(segment->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || stats_arena_add_file(segment, i, fd) < 0)
            return;
    }
}

static struct span copy_of(const struct stats_segment *segment, unsigned arena)
{
    int fd = arena < segment->arena_fd_count ? segment->arena_fds[arena] : -1;
    return fd < 0 ? span_of(NULL, 0) : stats_copy_arena(fd);
}

static void free_copy(struct span copy)
{
    free((void *)(uintptr_t)copy.at);
}

/* ---- what was left open ---- */

static uint64_t count_of(const struct stats_block *block, enum stats_counter counter)
{
    return atomic_load_explicit(&block->counter[counter], memory_order_relaxed);
}

static void add_left(const struct stats_block *block, pid_t ended, uint64_t left[STATS_PAIRS])
{
    pid_t owner = atomic_load_explicit(&block->owner, memory_order_relaxed);
    bool lives = owner != ended && os_process_exists(owner);
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        left[i] += lives
                       ? (uint64_t)block->settled[i]
                       : count_of(block, stats_pairs[i].up) - count_of(block, stats_pairs[i].down);
}

static void sum_left(struct span copy, pid_t ended, uint64_t left[STATS_PAIRS])
{
    const _Atomic uint32_t *place = &stats_copy_header(copy)->first_block;
    const struct stats_block *block;
    for (; (block = stats_copy_at(copy, place, sizeof(*block))); place = &block->next)
        add_left(block, ended, left);
}

/* Ends what was left open in an arena since the last time. Returns the number of connections. */
static uint64_t settle_arena(const struct stats_segment *segment, const struct stats_writer *writer,
                             unsigned arena, pid_t ended)
{
    struct stats_arena_record *record = &segment->header->arena[arena];
    struct span copy = copy_of(segment, arena);
    uint64_t left[STATS_PAIRS] = { 0 }, lost = 0;
    bool sound = copy.len > 0 && !stats_copy_survey(copy).damaged;
    if (sound)
        sum_left(copy, ended, left);
    free_copy(copy);
    for (unsigned i = 0; i < STATS_PAIRS && sound; i++) {
        uint64_t open = left[i] - (uint64_t)record->settled[i];
        record->settled[i] = (int64_t)left[i];
        if (open > OPEN_MAX_CLAIMED) /* less than before, or a lie */
            continue;
        stats_writer_add(writer, stats_pairs[i].down, open);
        if (i == STATS_PAIR_connections_open)
            lost = open;
    }
    stats_writer_add(writer, STATS_connections_lost, lost);
    return lost;
}

bool stats_arena_is_of(const struct stats_segment *segment, pid_t pid)
{
    uint32_t count = atomic_load(&segment->header->arena_count);
    for (unsigned i = 0; i < count; i++)
        if (atomic_load(&segment->header->arena[i].owner) == pid)
            return true;
    return false;
}

uint64_t stats_arena_settle(const struct stats_segment *segment, const struct stats_writer *writer,
                            pid_t pid)
{
    uint64_t lost = 0;
    uint32_t count = atomic_load(&segment->header->arena_count);
    for (unsigned i = 0; i < count; i++) {
        _Atomic int32_t *owner = &segment->header->arena[i].owner;
        pid_t process = atomic_load(owner);
        if (process != pid && os_process_exists(process))
            continue;
        lost += settle_arena(segment, writer, i, pid);
        atomic_store(owner, 0);
    }
    return lost;
}

/* ---- which process counts where ---- */

/* Whether a process can continue in the arena that another one has left. */
static bool can_continue(const struct stats_segment *segment, unsigned arena)
{
    struct span copy = copy_of(segment, arena);
    struct stats_survey found = stats_copy_survey(copy);
    bool sound = copy.len > 0 && !found.damaged && found.newer == 0;
    free_copy(copy);
    return sound;
}

static unsigned claim_left(const struct stats_segment *segment, bool for_master)
{
    uint32_t count = atomic_load(&segment->header->arena_count);
    for (unsigned i = 0; i < count; i++) {
        struct stats_arena_record *record = &segment->header->arena[i];
        int32_t none = 0;
        if (atomic_load(&record->owner) == 0 && record->of_masters == for_master &&
            can_continue(segment, i) &&
            atomic_compare_exchange_strong(&record->owner, &none, (int32_t)getpid()))
            return i;
    }
    return STATS_ARENA_NONE;
}

/* Files of masters that have died are skipped, and their records become part of the head, too. */
static unsigned claim_new(struct stats_segment *segment, bool for_master)
{
    struct stats_header *header = segment->header;
    uint32_t count = atomic_load(&header->arena_count);
    unsigned arena = count;
    int rc = -EEXIST;
    for (; arena < STATS_ARENAS_MAX && rc == -EEXIST; arena += rc == -EEXIST)
        rc = create_file(segment, arena);
    if (rc == 0)
        rc = stats_arena_allocate(segment->head_fd,
                                  offsetof(struct stats_header, arena) +
                                      count * sizeof(header->arena[0]),
                                  (arena + 1 - count) * sizeof(header->arena[0]));
    if (rc < 0)
        return STATS_ARENA_NONE;
    header->arena[arena].of_masters = for_master;
    atomic_store(&header->arena[arena].owner, (int32_t)getpid());
    while (count <= arena && !atomic_compare_exchange_weak(&header->arena_count, &count, arena + 1))
        continue;
    return arena;
}

unsigned stats_arena_claim(struct stats_segment *segment, bool for_master)
{
    stats_arena_open_all(segment);
    unsigned arena = claim_left(segment, for_master);
    if (arena == STATS_ARENA_NONE)
        arena = claim_new(segment, for_master);
    if (arena == STATS_ARENA_NONE)
        atomic_fetch_add(&segment->header->unseen, 1);
    return arena;
}

void stats_arena_give(const struct stats_segment *segment, unsigned arena, pid_t pid)
{
    if (arena < STATS_ARENAS_MAX)
        atomic_store(&segment->header->arena[arena].owner, (int32_t)pid);
}

/* Children of the process that left the arena may be alive and take more of it meanwhile. So it
 * is surveyed in a copy, and a place behind the copy is sound when it has been taken since. */
bool stats_arena_adopt(const struct stats_segment *segment)
{
    struct stats_arena_header *header = stats_blocks_header(segment);
    const uint64_t most = STATS_ARENA_BYTES - sizeof(*header);
    uint64_t taken = atomic_load(&header->taken);
    if (taken > most || stats_arena_allocate(segment->fd, 0, sizeof(*header) + taken) < 0)
        return false;
    struct span copy = stats_copy_arena(segment->fd);
    struct stats_survey found = stats_copy_survey(copy);
    bool sound = copy.len > 0 && !found.damaged;
    free_copy(copy);
    taken = atomic_load(&header->taken);
    if (!sound || taken > most || found.newer > sizeof(*header) + taken)
        return false;
    atomic_store(&header->full, false);
    stats_blocks_recover(segment);
    return true;
}
