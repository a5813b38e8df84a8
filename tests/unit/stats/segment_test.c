/* SPDX-License-Identifier: MIT
 *
 * A segment from its creation to its end: a reader finds what writers counted, even when a
 * writer has died.
 */
#include "stats/arena.h"
#include "stats/blocks.h"
#include "stats/writer.h"
#include "unit/stats/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t counted(enum stats_counter counter)
{
    struct stats_snapshot *snapshot = take_snapshot();
    uint64_t count = snapshot->counter[counter];
    stats_snapshot_free(snapshot);
    return count;
}

/* ---- counting ---- */

static void a_reader_finds_what_was_counted(void **state)
{
    (void)state;
    struct stats_writer a, b;
    stats_writer_open(&a, &segment);
    stats_writer_open(&b, &segment);
    assert_true(stats_writer_visible(&a));
    assert_ptr_not_equal(a.block, b.block);
    stats_writer_add(&a, STATS_requests, 3);
    stats_writer_add(&b, STATS_requests, 4);
    stats_writer_set(&a, STATS_cache_bytes, 100);
    stats_writer_set(&b, STATS_cache_bytes, 20);
    stats_writer_add(&a, STATS_STATUS_404, 1);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_requests], 7);
    assert_int_equal(snapshot->counter[STATS_cache_bytes], 120);
    assert_int_equal(snapshot->counter[STATS_STATUS_FIRST + stats_counters_status_place(404)], 1);
    assert_int_equal(snapshot->part_count, 2);
    assert_int_equal(snapshot->parts[0].owner, getpid());
    assert_true(snapshot->running);
    assert_string_equal(snapshot->weir, WEIR_VERSION);
    stats_snapshot_free(snapshot);
    stats_writer_close(&a);
    stats_writer_close(&b);
}

static void the_head_describes_every_counter(void **state)
{
    (void)state;
    const struct stats_entry *entry = segment.header->entry;
    for (unsigned i = 0; i < STATS_NAMED; i++) {
        assert_string_equal(entry[i].name, stats_counters[i].name);
        assert_string_equal(entry[i].unit, stats_counters[i].unit);
        assert_string_equal(entry[i].sentence, stats_counters[i].sentence);
    }
    for (unsigned i = 0; i < STATS_COUNTERS; i++) {
        assert_string_not_equal(entry[i].name, "");
        assert_string_not_equal(entry[i].sentence, "");
        assert_int_equal(entry[i].offset, offsetof(struct stats_block, counter[i]));
    }
}

static void the_next_writer_continues_a_block(void **state)
{
    (void)state;
    struct stats_writer writer;
    const struct stats_block *first = NULL;
    for (unsigned i = 0; i < 10; i++) {
        stats_writer_open(&writer, &segment);
        first = first ? first : writer.block;
        assert_ptr_equal(writer.block, first);
        stats_writer_add(&writer, STATS_requests, 1);
        stats_writer_set(&writer, STATS_cache_entries, 5);
        stats_writer_close(&writer);
    }
    assert_int_equal(counted(STATS_requests), 10);
    assert_int_equal(counted(STATS_cache_entries), 0);
}

static void counting_without_a_segment_has_no_effect(void **state)
{
    (void)state;
    struct stats_writer writer;
    stats_writer_open(&writer, NULL);
    assert_false(stats_writer_visible(&writer));
    stats_writer_add(&writer, STATS_requests, 1);
    assert_null(stats_writer_row(&writer, 0));
    stats_writer_close(&writer);
    stats_writer_close(&writer);
}

static void durations_are_within_one_percent(void **state)
{
    (void)state;
    static const uint64_t durations_ns[] = { 1000,       1500,        99999,        1234567,
                                             1000000000, 59999999999, 3600000000000 };
    struct stats_writer writer;
    stats_writer_open(&writer, &segment);
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < sizeof(durations_ns) / sizeof(durations_ns[0]); i++) {
        struct stats_row *row = stats_writer_row(&writer, 3);
        assert_non_null(row);
        stats_writer_record(&writer, &row->latency, durations_ns[i], 1);
        sum_ns += durations_ns[i];
        struct stats_snapshot *snapshot = take_snapshot();
        const struct stats_counts *latency = &snapshot->histogram[STATS_HISTOGRAM_latency];
        assert_int_equal(latency->count, i + 1);
        assert_int_equal(latency->sum_ns, sum_ns);
        double told = (double)stats_snapshot_quantile_ns(latency, 1);
        assert_true(told > 0.99 * (double)durations_ns[i] && told < 1.01 * (double)durations_ns[i]);
        assert_int_equal(stats_snapshot_at_most(latency, UINT64_C(1) << 50), i + 1);
        assert_int_equal(stats_snapshot_at_most(latency, 900), 0);
        assert_int_equal(snapshot->site[3].latency.count, i + 1);
        stats_snapshot_free(snapshot);
    }
    stats_writer_record(&writer, &writer.block->sending, UINT64_MAX, 2);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->histogram[STATS_HISTOGRAM_sending].count, 2);
    stats_snapshot_free(snapshot);
    stats_writer_close(&writer);
}

/* ---- the dead ---- */

/* Has a process count, and die. */
static pid_t die_with(unsigned accepted, unsigned closed)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct stats_writer a, b;
        stats_writer_open(&a, &segment);
        stats_writer_open(&b, &segment);
        stats_writer_add(&a, STATS_connections_accepted, accepted);
        stats_writer_add(&b, STATS_connections_closed, closed);
        stats_writer_add(&b, STATS_activities_begun, 1);
        stats_writer_set(&a, STATS_cache_bytes, 1000);
        (void)raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return pid;
}

static void what_a_dead_process_had_open_is_settled(void **state)
{
    (void)state;
    pid_t pid = die_with(5, 3);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 2);
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_active], 1);
    stats_snapshot_free(snapshot);
    assert_int_equal(stats_blocks_settle(&segment, pid), 2);
    assert_int_equal(stats_blocks_settle(&segment, pid), 0);
    snapshot = take_snapshot();
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_open], 0);
    assert_int_equal(snapshot->pair[STATS_PAIR_connections_active], 0);
    assert_int_equal(snapshot->counter[STATS_connections_accepted], 5);
    assert_int_equal(snapshot->counter[STATS_connections_closed], 5);
    assert_int_equal(snapshot->counter[STATS_connections_lost], 2);
    assert_int_equal(snapshot->counter[STATS_cache_bytes], 0);
    stats_snapshot_free(snapshot);
}

/* Blocks that are uneven by themselves, and even together, are not settled again. */
static void an_earlier_difference_is_not_settled_again(void **state)
{
    (void)state;
    struct stats_writer a, b;
    stats_writer_open(&a, &segment);
    stats_writer_open(&b, &segment);
    stats_writer_add(&a, STATS_connections_accepted, 10);
    stats_writer_add(&b, STATS_connections_closed, 10);
    stats_writer_close(&b);
    stats_writer_close(&a); /* on top: the dead one's `a` is this one */
    pid_t pid = die_with(4, 3);
    assert_int_equal(stats_blocks_settle(&segment, pid), 1);
    assert_int_equal(counted(STATS_connections_accepted), 14);
    assert_int_equal(counted(STATS_connections_closed), 14);
    assert_int_equal(counted(STATS_connections_lost), 1);
}

/* ---- bounds ---- */

static void a_full_segment_is_reported_and_never_faults(void **state)
{
    (void)state;
    struct stats_writer first, last;
    stats_writer_open(&first, &segment);
    atomic_store(&stats_blocks_header(&segment)->full, true);
    struct stats_row *row = stats_writer_row(&first, 0);
    assert_null(row);
    stats_writer_record(&first, &first.block->sending, 5000, 3);
    stats_writer_open(&last, &segment);
    assert_false(stats_writer_visible(&last));
    stats_writer_add(&last, STATS_requests, 1);
    stats_writer_close(&last);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->counter[STATS_durations_unrecorded], 3);
    assert_int_equal(snapshot->unseen, 1);
    stats_snapshot_free(snapshot);
    stats_writer_close(&first);
}

static void taking_memory_ends_at_the_limit(void **state)
{
    (void)state;
    assert_int_equal(stats_arena_take(&segment, STATS_ARENA_BYTES), 0);
    uint32_t a = stats_arena_take(&segment, 1), b = stats_arena_take(&segment, 65);
    uint32_t c = stats_arena_take(&segment, 1);
    assert_int_equal(a % CACHE_LINE, 0);
    assert_int_equal(b - a, CACHE_LINE);
    assert_int_equal(c - b, 2 * CACHE_LINE);
}

static void sites_beyond_the_last_share_a_place(void **state)
{
    (void)state;
    char name[16];
    unsigned place[100];
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "site %u", i);
        stats_segment_add_site(&segment, name);
        stats_segment_add_site(&segment, name);
        place[i] = stats_segment_site(&segment, name);
        assert_int_equal(place[i], i < 62 ? i + 1 : STATS_SITES_MAX - 1);
    }
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->site_count, STATS_SITES_MAX);
    assert_string_equal(snapshot->site[0].name, "");
    assert_string_equal(snapshot->site[1].name, "site 0");
    assert_string_equal(snapshot->site[STATS_SITES_MAX - 1].name, "(others)");
    stats_snapshot_free(snapshot);
}

/* ---- the master's words ---- */

static void generations_and_reloads_are_recorded(void **state)
{
    (void)state;
    struct stats_generation generation = { .configuration = 77, .workers = 2, .model = "epoll" };
    char error[2 * STATS_TEXT_MAX];
    memset(error, 'e', sizeof(error));
    error[sizeof(error) - 1] = '\0';
    for (unsigned i = 0; i < STATS_GENERATIONS_MAX + 2; i++)
        stats_segment_generation(&segment, &generation);
    stats_segment_reloaded(&segment, error, 1234);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->generation, STATS_GENERATIONS_MAX + 2);
    assert_int_equal(snapshot->generations[2].number, STATS_GENERATIONS_MAX + 2);
    assert_string_equal(snapshot->generations[2].model, "epoll");
    assert_true(snapshot->reload_failed);
    assert_int_equal(snapshot->reloaded_s, 1234);
    assert_int_equal(strlen(snapshot->reload_error), STATS_TEXT_MAX - 1);
    stats_snapshot_free(snapshot);
    stats_segment_reloaded(&segment, NULL, 1235);
    snapshot = take_snapshot();
    assert_false(snapshot->reload_failed);
    assert_string_equal(snapshot->reload_error, "");
    stats_snapshot_free(snapshot);
}

static void a_reader_finds_the_certificates(void **state)
{
    (void)state;
    struct stats_certificate certificates[2] = { { 100, "a.example", "ECDSA" }, { 200, "b", "" } };
    memset(certificates[1].name, 'n', sizeof(certificates[1].name)); /* not terminated */
    memset(certificates[1].key, 'k', sizeof(certificates[1].key));
    stats_segment_certificates(&segment, certificates, 2);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->certificate_count, 2);
    assert_int_equal(snapshot->certificate[0].ends_s, 100);
    assert_string_equal(snapshot->certificate[0].name, "a.example");
    assert_string_equal(snapshot->certificate[0].key, "ECDSA");
    assert_int_equal(strlen(snapshot->certificate[1].name), STATS_CERTIFICATE_NAME_MAX - 1);
    assert_string_equal(snapshot->certificate[1].key, "kkkkkkk");
    stats_snapshot_free(snapshot);
    segment.header->certificate_count = UINT64_MAX; /* a damaged segment */
    snapshot = take_snapshot();
    assert_int_equal(snapshot->certificate_count, STATS_CERTIFICATES_MAX);
    stats_snapshot_free(snapshot);
    stats_segment_certificates(&segment, NULL, 0);
    snapshot = take_snapshot();
    assert_int_equal(snapshot->certificate_count, 0);
    stats_snapshot_free(snapshot);
}

/* ---- names ---- */

static void the_segment_is_private_to_its_user_and_removed_at_the_end(void **state)
{
    (void)state;
    char path[STATS_PATH_MAX], file[STATS_PATH_MAX + 8];
    struct stat info;
    snprintf(path, sizeof(path), STATS_FOLDER "%s", segment.name);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    static const char *const files[] = { STATS_HEAD, "0" };
    for (unsigned i = 0; i < 2; i++) {
        snprintf(file, sizeof(file), "%s/%s", path, files[i]);
        assert_int_equal(stat(file, &info), 0);
        assert_int_equal(info.st_mode & 07777, 0600);
    }
    stats_segment_remove(&segment);
    assert_int_equal(stat(path, &info), -1);
    stats_segment_remove(&segment);
}

/* The name of a segment whose master has ended. */
static void name_of_dead(char out[STATS_NAME_MAX])
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    stats_segment_name(out, geteuid(), pid);
}

static void a_new_server_removes_the_segment_of_a_dead_one(void **state)
{
    (void)state;
    char mine[STATS_NAME_MAX], theirs[STATS_NAME_MAX], path[STATS_PATH_MAX];
    char file[STATS_PATH_MAX + 8];
    name_of_dead(theirs);
    memcpy(mine, segment.name, sizeof(mine));
    stats_segment_remove(&segment);
    snprintf(path, sizeof(path), STATS_FOLDER "%s", theirs);
    for (unsigned version = 0; version < 2; version++) { /* an early one had a file */
        assert_int_equal(version == 0 ? creat(path, 0600) >= 0 : mkdir(path, 0700) == 0, true);
        snprintf(file, sizeof(file), "%s/0", path);
        if (version > 0)
            assert_true(creat(file, 0600) >= 0);
        assert_int_equal(make_segment(state), 0);
        assert_string_equal(segment.name, mine);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(errno, ENOENT);
        stats_segment_remove(&segment);
    }
}

/* A server in another PID namespace has an id that no process has here. */
static void a_segment_stays_while_its_master_holds_the_head(void **state)
{
    (void)state;
    char theirs[STATS_NAME_MAX], path[STATS_PATH_MAX], head[STATS_PATH_MAX + 8];
    name_of_dead(theirs);
    snprintf(path, sizeof(path), STATS_FOLDER "%s", theirs);
    snprintf(head, sizeof(head), "%s/" STATS_HEAD, path);
    assert_int_equal(mkdir(path, 0700), 0);
    int fd = open(head, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    stats_segment_remove(&segment);
    assert_int_equal(make_segment(state), 0);
    assert_int_equal(access(head, F_OK), 0);
    close(fd);
    stats_segment_remove(&segment);
    assert_int_equal(make_segment(state), 0);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_master_holds_the_head(void **state)
{
    (void)state;
    char head[STATS_PATH_MAX + 8];
    snprintf(head, sizeof(head), STATS_FOLDER "%s/" STATS_HEAD, segment.name);
    int fd = open(head, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
}

static void a_successor_continues_under_its_own_name(void **state)
{
    (void)state;
    struct stats_writer writer;
    struct stats_instance found[STATS_INSTANCES_MAX];
    stats_writer_open(&writer, &segment);
    stats_writer_add(&writer, STATS_requests, 5);
    stats_writer_close(&writer);
    char before[STATS_NAME_MAX];
    memcpy(before, segment.name, sizeof(before));
    pid_t pid = fork();
    if (pid == 0) {
        struct stats_segment next;
        if (stats_segment_borrow(&next, before) < 0)
            _exit(1);
        stats_segment_own(&next);
        stats_writer_open(&writer, &next);
        stats_writer_add(&writer, STATS_requests, 2);
        stats_writer_close(&writer);
        char name[STATS_NAME_MAX];
        stats_segment_name(name, geteuid(), getpid());
        _exit(strcmp(next.name, name) == 0 ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char why[STATS_WHY_MAX];
    assert_null(stats_snapshot_take(before, why));
    stats_segment_name(before, geteuid(), pid);
    struct stats_snapshot *snapshot = stats_snapshot_take(before, why);
    assert_non_null(snapshot);
    assert_int_equal(snapshot->counter[STATS_requests], 7);
    assert_int_equal(snapshot->master, pid);
    stats_snapshot_free(snapshot);
    stats_segment_remove(&segment); /* another master owns it */
    assert_int_equal(stats_snapshot_find_instance(0, pid, found), 1);
    assert_int_equal(make_segment(state), 0); /* that master is dead */
    assert_int_equal(stats_snapshot_find_instance(0, pid, found), 0);
}

static void a_segment_of_another_layout_is_refused(void **state)
{
    (void)state;
    struct stats_segment next;
    segment.header->layout++;
    assert_int_equal(stats_segment_borrow(&next, segment.name), -EPROTO);
    assert_int_equal(stats_segment_borrow(&next, "/weir-none"), -ENOENT);
}

static void instances_are_found_by_their_names(void **state)
{
    (void)state;
    struct stats_instance found[STATS_INSTANCES_MAX];
    size_t count = stats_snapshot_find_instance(geteuid(), 0, found);
    bool mine = false;
    for (size_t i = 0; i < count; i++)
        mine = mine || found[i].pid == getpid();
    assert_true(mine);
    assert_int_equal(stats_snapshot_find_instance(geteuid() + 1, getpid(), found), 1);
    assert_string_equal(found[0].name, segment.name);
    assert_int_equal(stats_snapshot_find_instance(geteuid() + 12345, 0, found), 0);
}

/* Any user can make folders there, with any name. */
static void an_instance_that_another_user_has_planted_is_not_taken(void **state)
{
    (void)state;
    struct stats_instance found[STATS_INSTANCES_MAX];
    char name[STATS_NAME_MAX], path[64];
    const uid_t other = geteuid() + 12345;
    stats_segment_name(name, other, getpid());
    snprintf(path, sizeof(path), STATS_FOLDER "%s", name);
    assert_int_equal(mkdir(path, 0700), 0);
    size_t of_user = stats_snapshot_find_instance(other, 0, found);
    size_t of_process = stats_snapshot_find_instance(geteuid(), getpid(), found);
    bool chowned = geteuid() == 0 && chown(path, other, (gid_t)-1) == 0;
    size_t after = stats_snapshot_find_instance(geteuid(), getpid(), found);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(of_user, 0);
    assert_int_equal(of_process, 1);
    assert_int_equal(after, chowned ? 2 : 1);
    assert_string_equal(found[0].name, segment.name);
}

static void instances_are_followed_to_their_new_names(void **state)
{
    (void)state;
    struct stats_instance found[STATS_INSTANCES_MAX], other;
    char moved[STATS_NAME_MAX], from[64], to[64];
    assert_int_equal(stats_snapshot_find_instance(geteuid(), getpid(), found), 1);
    stats_segment_name(moved, geteuid(), INT_MAX);
    snprintf(from, sizeof(from), STATS_FOLDER "%s", segment.name);
    snprintf(to, sizeof(to), STATS_FOLDER "%s", moved);
    assert_int_equal(rename(from, to), 0);
    assert_true(stats_snapshot_follow_instance(&found[0]));
    assert_string_equal(found[0].name, moved);
    assert_int_equal(found[0].pid, INT_MAX);
    assert_int_equal(rename(to, from), 0);
    other = found[0];
    other.file = UINT64_MAX;
    assert_false(stats_snapshot_follow_instance(&other));
    assert_string_equal(other.name, moved);
}

#define WITH_SEGMENT(test) cmocka_unit_test_setup_teardown(test, make_segment, remove_segment)

/* Else readers would wait for each later copy, and take one that is torn. */
static void a_master_that_died_while_it_wrote_leaves_no_odd_sequence(void **state)
{
    (void)state;
    atomic_store(&segment.header->sequence, 7);
    stats_segment_add_site(&segment, "shop");
    assert_int_equal(atomic_load(&segment.header->sequence), 8);
    stats_segment_add_site(&segment, "blog");
    assert_int_equal(atomic_load(&segment.header->sequence), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SEGMENT(a_reader_finds_what_was_counted),
        WITH_SEGMENT(the_head_describes_every_counter),
        WITH_SEGMENT(the_next_writer_continues_a_block),
        WITH_SEGMENT(a_master_that_died_while_it_wrote_leaves_no_odd_sequence),
        cmocka_unit_test(counting_without_a_segment_has_no_effect),
        WITH_SEGMENT(durations_are_within_one_percent),
        WITH_SEGMENT(what_a_dead_process_had_open_is_settled),
        WITH_SEGMENT(an_earlier_difference_is_not_settled_again),
        WITH_SEGMENT(a_full_segment_is_reported_and_never_faults),
        WITH_SEGMENT(taking_memory_ends_at_the_limit),
        WITH_SEGMENT(sites_beyond_the_last_share_a_place),
        WITH_SEGMENT(generations_and_reloads_are_recorded),
        WITH_SEGMENT(a_reader_finds_the_certificates),
        WITH_SEGMENT(the_segment_is_private_to_its_user_and_removed_at_the_end),
        WITH_SEGMENT(a_new_server_removes_the_segment_of_a_dead_one),
        WITH_SEGMENT(a_segment_stays_while_its_master_holds_the_head),
        WITH_SEGMENT(a_master_holds_the_head),
        WITH_SEGMENT(a_successor_continues_under_its_own_name),
        WITH_SEGMENT(a_segment_of_another_layout_is_refused),
        WITH_SEGMENT(instances_are_found_by_their_names),
        WITH_SEGMENT(an_instance_that_another_user_has_planted_is_not_taken),
        WITH_SEGMENT(instances_are_followed_to_their_new_names),
    };
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
