/* SPDX-License-Identifier: MIT
 *
 * Workers and their arenas: what a worker can write, what the master believes of it, and what
 * happens to the counts of a worker that dies. A worker is a child of the test.
 */
#include "stats/arena.h"
#include "stats/blocks.h"
#include "stats/moments.h"
#include "unit/stats/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct stats_writer master;
static struct stats_moments moments;

static int open_master(void **state)
{
    moments = (struct stats_moments){ 0 };
    if (make_segment(state) < 0)
        return -1;
    stats_writer_open(&master, &segment);
    return 0;
}

static int close_master(void **state)
{
    stats_writer_close(&master);
    return remove_segment(state);
}

/* The end of a worker. */
enum ending { EXITS, DIES };

/* Runs `work` in a worker; returns its process id. Status 1 of the worker fails the test. */
static pid_t run_worker(void (*work)(void), enum ending ending, unsigned *ret_arena)
{
    unsigned arena = stats_arena_claim(&segment, false);
    assert_int_not_equal(arena, STATS_ARENA_NONE);
    pid_t pid = fork();
    if (pid == 0) {
        if (stats_segment_enter(&segment, arena) < 0 || !segment.base)
            _exit(1);
        work();
        if (ending == DIES)
            (void)raise(SIGKILL);
        _exit(0);
    }
    int status;
    stats_arena_give(&segment, arena, pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    if (ret_arena)
        *ret_arena = arena;
    return pid;
}

/* In a worker. */
static void expect(bool condition)
{
    if (!condition)
        _exit(1);
}

static void serve(unsigned accepted, unsigned closed)
{
    struct stats_writer writer;
    stats_writer_open(&writer, &segment);
    stats_writer_add(&writer, STATS_connections_accepted, accepted);
    stats_writer_add(&writer, STATS_connections_closed, closed);
    stats_writer_add(&writer, STATS_requests, 1);
    stats_writer_set(&writer, STATS_cache_bytes, 1000);
    struct stats_row *row = stats_writer_row(&writer, 1);
    expect(row != NULL);
    stats_writer_add_to_cell(&row->requests, 1);
    stats_writer_record(&writer, &row->latency, 12345, 1);
    if (accepted == closed)
        stats_writer_close(&writer);
}

/* What a master leaves that dies when it has made the file. */
static void leave_files(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        int fd = openat(segment.folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(close(fd), 0);
    }
}

/* A hole would end the master with SIGBUS, when there is no memory for it. */
static void the_records_of_skipped_files_have_memory(void **state)
{
    (void)state;
    const uint32_t first = atomic_load(&segment.header->arena_count);
    leave_files(first, 1000);
    unsigned arena = stats_arena_claim(&segment, false);
    assert_int_equal(arena, first + 1000);
    struct stat head;
    assert_int_equal(fstat(segment.head_fd, &head), 0);
    assert_true((size_t)head.st_blocks * 512 >= offsetof(struct stats_header, arena[arena + 1]));
}

static void serve_one_of_three(void)
{
    serve(3, 1);
}

static void serve_all(void)
{
    serve(2, 2);
}

/* ---- what a worker can write ---- */

/* Shared mappings that can be written: their names and sizes. */
static unsigned count_writable_mappings(size_t *ret_bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], rights[8];
    unsigned count = 0;
    expect(maps != NULL);
    while (fgets(line, sizeof(line), maps)) {
        uint64_t from, to;
        expect(sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, rights) == 3);
        if (strcmp(rights, "rw-s") != 0)
            continue;
        count++;
        *ret_bytes = to - from;
    }
    (void)fclose(maps);
    return count;
}

/* Descriptors of files of the segment. */
static unsigned count_files(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 64; fd++) {
        char path[32], target[256];
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t len = readlink(path, target, sizeof(target) - 1);
        if (len < 0)
            continue;
        target[len] = '\0';
        count += strstr(target, segment.name) != NULL;
    }
    return count;
}

static void try_to_write_more(void)
{
    size_t bytes = 0;
    expect(count_writable_mappings(&bytes) == 1);
    expect(bytes == STATS_ARENA_BYTES);
    expect(count_files() == 1 && segment.fd >= 0);
    void *head = segment.header;
    expect(mprotect(head, sizeof(struct stats_header), PROT_READ | PROT_WRITE) < 0);
    expect(errno == EACCES);
}

static void a_worker_can_write_nothing_but_its_arena(void **state)
{
    (void)state;
    (void)run_worker(serve_all, EXITS, NULL); /* there are other arenas */
    (void)run_worker(try_to_write_more, EXITS, NULL);
}

static void the_statistics_page_can_write_nothing(void **state)
{
    (void)state;
    (void)run_worker(serve_all, EXITS, NULL);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        size_t bytes;
        char why[STATS_WHY_MAX];
        stats_arena_open_all(&segment);
        expect(stats_segment_only_read(&segment) == 0);
        expect(count_writable_mappings(&bytes) == 0);
        struct stats_snapshot *snapshot = stats_snapshot_here(&segment, why);
        expect(snapshot && snapshot->counter[STATS_requests] == 1);
        for (unsigned i = 0; i < segment.arena_fd_count; i++)
            expect((fcntl(segment.arena_fds[i], F_GETFL) & O_ACCMODE) == O_RDONLY);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- workers that die, and their successors ---- */

static void the_master_ends_what_a_dead_worker_had_open(void **state)
{
    (void)state;
    unsigned arena;
    pid_t pid = run_worker(serve_one_of_three, DIES, &arena);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 2);
    assert_int_equal(snapshot->counter[STATS_cache_bytes], 1000);
    stats_snapshot_free(snapshot);
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 2);
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 0);
    snapshot = take_snapshot();
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 0);
    assert_int_equal(snapshot->counter[STATS_connections_closed], 3);
    assert_int_equal(snapshot->counter[STATS_connections_lost], 2);
    assert_int_equal(snapshot->counter[STATS_cache_bytes], 0);
    assert_int_equal(snapshot->counter[STATS_requests], 1);
    stats_snapshot_free(snapshot);
}

static void a_successor_continues_in_the_arena_that_was_left(void **state)
{
    (void)state;
    unsigned first, next;
    for (unsigned i = 0; i < 5; i++) {
        pid_t pid = run_worker(i % 2 ? serve_all : serve_one_of_three, i % 2 ? EXITS : DIES, &next);
        (void)stats_arena_settle(&segment, &master, pid);
        first = i == 0 ? next : first;
        assert_int_equal(next, first);
    }
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_requests], 5);
    assert_int_equal(snapshot->counter[STATS_connections_accepted], 3 * 3 + 2 * 2);
    assert_int_equal(snapshot->counter[STATS_connections_closed], 3 * 3 + 2 * 2);
    assert_int_equal(snapshot->counter[STATS_connections_lost], 3 * 2);
    assert_int_equal(snapshot->counter[STATS_cache_bytes], 0);
    assert_int_equal(snapshot->site[1].requests, 5);
    assert_int_equal(snapshot->histogram[STATS_HISTOGRAM_latency].count, 5);
    assert_int_equal(snapshot->part_count, 2); /* the worker's block, which all had, and ours */
    stats_snapshot_free(snapshot);
}

static void masters_continue_in_arenas_of_masters(void **state)
{
    (void)state;
    (void)stats_arena_settle(&segment, &master, run_worker(serve_all, EXITS, NULL));
    unsigned own[4], count = atomic_load(&segment.header->arena_count);
    for (unsigned i = 0; i < 4; i++) {
        struct stats_segment next;
        assert_int_equal(stats_segment_borrow(&next, segment.name), 0);
        own[i] = next.arena;
        stats_arena_give(&next, next.arena, 0);
        stats_segment_leave(&next);
        assert_int_equal(own[i], own[0]);
    }
    assert_int_equal(own[0], count); /* a new one: the worker's was free */
    assert_int_equal(atomic_load(&segment.header->arena_count), count + 1);
}

/* A child of the worker, as with model `fork`, counts on after its death. */
static int child_may_end[2];

static void leave_a_child(void)
{
    serve(1, 1);
    if (fork() != 0)
        return;
    char byte;
    struct stats_writer writer;
    stats_writer_open(&writer, &segment);
    stats_writer_add(&writer, STATS_connections_accepted, 1);
    expect(write(child_may_end[1], "r", 1) == 1);
    while (read(child_may_end[0], &byte, 1) != 1)
        continue;
    stats_writer_add(&writer, STATS_requests, 1);
    stats_writer_add(&writer, STATS_connections_closed, 1);
    stats_writer_close(&writer);
    _exit(0);
}

static void a_child_that_outlives_its_worker_keeps_its_connection(void **state)
{
    (void)state;
    char byte;
    int ours[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ours), 0);
    child_may_end[0] = child_may_end[1] = ours[1];
    pid_t pid = run_worker(leave_a_child, DIES, NULL);
    assert_int_equal(read(ours[0], &byte, 1), 1); /* the child has counted */
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 0);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 1);
    stats_snapshot_free(snapshot);
    (void)stats_arena_settle(&segment, &master, run_worker(serve_all, EXITS, NULL));
    assert_int_equal(write(ours[0], "e", 1), 1);
    close(ours[1]);
    assert_int_equal(read(ours[0], &byte, 1), 0); /* the child has ended */
    snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_requests], 3);
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 0);
    assert_int_equal(snapshot->counter[STATS_connections_lost], 0);
    stats_snapshot_free(snapshot);
    close(ours[0]);
}

/* ---- hostile workers ---- */

static const uint64_t hostile[] = { 0,
                                    UINT64_MAX,
                                    64,
                                    1,
                                    STATS_ARENA_BYTES,
                                    STATS_ARENA_BYTES - 64,
                                    UINT64_C(0x0000004000000040),
                                    UINT64_C(0x8000000000000000) };
enum { HOSTILE = sizeof(hostile) / sizeof(hostile[0]) };

/* A child that is about to put its block has taken its name off the block. */
static void put_a_block_by_halves(void)
{
    struct stats_block *first = stats_blocks_get(&segment);
    struct stats_block *second = stats_blocks_get(&segment);
    struct stats_block *half = stats_blocks_get(&segment);
    expect(first && second && half);
    stats_blocks_put(&segment, first);
    stats_blocks_put(&segment, second);
    atomic_store(&half->owner, 0);
    expect(stats_arena_adopt(&segment)); /* as a successor does */
    stats_blocks_put(&segment, half);    /* the child goes on */
    struct stats_block *taken[4];
    for (unsigned i = 0; i < 4; i++) {
        taken[i] = stats_blocks_get(&segment);
        for (unsigned j = 0; j < i; j++)
            expect(taken[i] && taken[i] != taken[j]);
    }
    expect(taken[3] != first && taken[3] != second && taken[3] != half); /* it is new */
}

static void a_block_that_is_put_during_an_adoption_gets_one_writer(void **state)
{
    (void)state;
    (void)run_worker(put_a_block_by_halves, EXITS, NULL);
}

/* A child of the dead worker makes blocks during each adoption. */
static void adopt_while_a_child_makes_blocks(void)
{
    enum { BLOCKS = 2000 };
    int status = 0;
    const pid_t child = fork();
    expect(child >= 0);
    for (unsigned i = 0; child == 0 && i < BLOCKS; i++)
        expect(stats_blocks_get(&segment) != NULL);
    if (child == 0)
        _exit(0);
    do
        expect(stats_arena_adopt(&segment));
    while (waitpid(child, &status, WNOHANG) == 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct span copy = stats_copy_arena(segment.fd);
    expect(stats_copy_survey(copy).blocks == BLOCKS);
}

static void an_arena_that_grows_meanwhile_is_adopted(void **state)
{
    (void)state;
    (void)run_worker(adopt_while_a_child_makes_blocks, EXITS, NULL);
}

/* Neither a circle nor a place without a block leads a successor astray. */
static void damage_the_free_list(void)
{
    struct stats_block *blocks[3];
    for (unsigned i = 0; i < 3; i++)
        expect((blocks[i] = stats_blocks_get(&segment)) != NULL);
    for (unsigned i = 0; i < 3; i++)
        stats_blocks_put(&segment, blocks[i]);
    uint32_t last = (uint32_t)((char *)blocks[2] - segment.base);
    for (unsigned way = 0; way < HOSTILE + 1; way++) {
        atomic_store(&blocks[1]->next_free, way < HOSTILE ? (uint32_t)hostile[way] : last);
        expect(stats_arena_adopt(&segment));
        struct stats_block *first = stats_blocks_get(&segment);
        struct stats_block *second = stats_blocks_get(&segment);
        expect(first && second && first != second);
        stats_blocks_put(&segment, blocks[1]);
        stats_blocks_put(&segment, blocks[2]);
    }
}

static void a_damaged_free_list_ends_where_it_is_damaged(void **state)
{
    (void)state;
    (void)run_worker(damage_the_free_list, EXITS, NULL);
}

/* All that the master does with the arenas. The test is that it returns. */
static void be_the_master(pid_t dead)
{
    (void)stats_moments_take(&moments, &segment, 1);
    (void)stats_arena_settle(&segment, &master, dead);
    stats_snapshot_free(take_snapshot());
}

static uint64_t hostile_value;

static void overwrite_all(void)
{
    serve(3, 1);
    uint64_t taken = atomic_load(&stats_blocks_header(&segment)->taken);
    uint64_t *words = (uint64_t *)(void *)segment.base;
    for (size_t i = 0; i < (sizeof(struct stats_arena_header) + taken) / sizeof(*words); i++)
        words[i] = hostile_value;
}

static void overwrite_all_with_own_places(void)
{
    serve(3, 1);
    uint64_t taken = atomic_load(&stats_blocks_header(&segment)->taken);
    uint32_t *words = (uint32_t *)(void *)(segment.base + sizeof(struct stats_arena_header));
    for (size_t i = 0; i < taken / sizeof(*words); i++)
        words[i] = (uint32_t)(sizeof(struct stats_arena_header) + i * sizeof(*words)) / 64 * 64;
}

static void a_worker_that_overwrites_its_arena_harms_no_other(void **state)
{
    (void)state;
    stats_writer_add(&master, STATS_reloads, 7);
    for (unsigned i = 0; i <= HOSTILE; i++) {
        hostile_value = hostile[i % HOSTILE];
        be_the_master(
            run_worker(i < HOSTILE ? overwrite_all : overwrite_all_with_own_places, DIES, NULL));
    }
    pid_t pid = run_worker(serve_all, EXITS, NULL); /* it gets an arena that works */
    (void)stats_arena_settle(&segment, &master, pid);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_reloads], 7);
    assert_true(snapshot->damaged > 0);
    assert_true(snapshot->counter[STATS_requests] > 0);
    stats_snapshot_free(snapshot);
}

static void a_damaged_arena_is_left_out_and_not_used_again(void **state)
{
    (void)state;
    unsigned bad, good;
    hostile_value = UINT64_MAX;
    pid_t pid = run_worker(overwrite_all, DIES, &bad);
    assert_int_equal(stats_moments_take(&moments, &segment, 1), 1);
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 0);
    pid = run_worker(serve_one_of_three, DIES, &good);
    assert_int_not_equal(bad, good);
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 2);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->damaged, 1);
    assert_int_equal(snapshot->counter[STATS_requests], 1);
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 0);
    stats_snapshot_free(snapshot);
}

/* One word at a time: each leads the master to another place. */
static void no_single_word_of_an_arena_leads_the_master_astray(void **state)
{
    (void)state;
    unsigned arena;
    pid_t pid = run_worker(serve_one_of_three, DIES, &arena);
    (void)stats_arena_settle(&segment, &master, pid);
    uint32_t word, kept;
    int fd = stats_arena_reopen(segment.arena_fds[arena], O_RDWR);
    assert_true(fd >= 0);
    struct span copy = stats_copy_arena(fd);
    size_t len = copy.len;
    free((void *)(uintptr_t)copy.at);
    assert_true(len > sizeof(struct stats_block));
    for (size_t at = 0; at < len; at += sizeof(word))
        for (unsigned i = 0; i < 4; i++) {
            word = (uint32_t)(i == 3 ? at / 64 * 64 : hostile[i]);
            assert_int_equal(pread(fd, &kept, sizeof(kept), (off_t)at), sizeof(kept));
            assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)at), sizeof(word));
            stats_arena_give(&segment, arena, pid);
            be_the_master(pid);
            assert_int_equal(pwrite(fd, &kept, sizeof(kept), (off_t)at), sizeof(kept));
        }
    close(fd);
}

static off_t hostile_length;

static void change_the_length(void)
{
    serve(3, 1);
    expect(ftruncate(segment.fd, hostile_length) == 0);
    if (hostile_length > 0)
        atomic_store(&stats_blocks_header(&segment)->taken, (uint64_t)hostile_length - 64);
}

static void an_arena_can_have_any_length(void **state)
{
    (void)state;
    static const off_t lengths[] = { 0, 1 << 12, STATS_ARENA_BYTES, (off_t)1 << 40 };
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        unsigned arena;
        hostile_length = lengths[i];
        be_the_master(run_worker(change_the_length, DIES, &arena));
        struct span copy = stats_copy_arena(segment.arena_fds[arena]);
        assert_true(copy.len < 1 << 20); /* never more than what the file really has */
        free((void *)(uintptr_t)copy.at);
    }
    be_the_master(run_worker(serve_all, EXITS, NULL));
}

static void claim_connections(void)
{
    serve(3, 3);
    struct stats_writer writer;
    stats_writer_open(&writer, &segment);
    stats_writer_set(&writer, STATS_connections_accepted, hostile_value);
}

static void an_impossible_number_of_open_connections_is_not_believed(void **state)
{
    (void)state;
    hostile_value = UINT64_C(1) << 60;
    pid_t pid = run_worker(claim_connections, DIES, NULL);
    assert_int_equal(stats_arena_settle(&segment, &master, pid), 0);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_connections_lost], 0);
    stats_snapshot_free(snapshot);
}

#define WITH_SEGMENT(test) cmocka_unit_test_setup_teardown(test, open_master, close_master)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SEGMENT(the_records_of_skipped_files_have_memory),
        WITH_SEGMENT(a_worker_can_write_nothing_but_its_arena),
        WITH_SEGMENT(the_statistics_page_can_write_nothing),
        WITH_SEGMENT(the_master_ends_what_a_dead_worker_had_open),
        WITH_SEGMENT(a_successor_continues_in_the_arena_that_was_left),
        WITH_SEGMENT(masters_continue_in_arenas_of_masters),
        WITH_SEGMENT(a_child_that_outlives_its_worker_keeps_its_connection),
        WITH_SEGMENT(a_block_that_is_put_during_an_adoption_gets_one_writer),
        WITH_SEGMENT(an_arena_that_grows_meanwhile_is_adopted),
        WITH_SEGMENT(a_damaged_free_list_ends_where_it_is_damaged),
        WITH_SEGMENT(a_worker_that_overwrites_its_arena_harms_no_other),
        WITH_SEGMENT(a_damaged_arena_is_left_out_and_not_used_again),
        WITH_SEGMENT(no_single_word_of_an_arena_leads_the_master_astray),
        WITH_SEGMENT(an_arena_can_have_any_length),
        WITH_SEGMENT(an_impossible_number_of_open_connections_is_not_believed),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
