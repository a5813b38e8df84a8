/* SPDX-License-Identifier: MIT
 *
 * The beginning of request ids: at random once, and elsewhere for each connection's thread or
 * process, without a system call. And the memory that a thread keeps.
 */
#include "session/thread.h"

#include "session/buffer.h"
#include "session/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned asked;

/* Replaces the system's function. */
ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    (void)flags;
    asked++;
    memset(bytes, (int)asked, len);
    return (ssize_t)len;
}

static struct log_access_sink sink;
static struct session_shared shared;
static struct session_thread owner;

static int make_owner(void **state)
{
    (void)state;
    shared = (struct session_shared){ .log = &sink };
    shared.cache =
        site_cache_new((struct site_cache_limits){ .bytes = 1 << 20, .entries = 16 }, 64);
    assert_non_null(shared.cache);
    assert_int_equal(log_access_open(&sink, "off", NULL, NULL), 0);
    assert_int_equal(session_thread_start(&owner, &shared, 0), 0);
    return 0;
}

static int end_owner(void **state)
{
    (void)state;
    session_thread_stop(&owner);
    site_cache_free(shared.cache);
    log_access_close(&sink);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void assert_different(uint64_t *ids, size_t count)
{
    qsort(ids, count, sizeof(*ids), compare);
    for (size_t i = 1; i < count; i++)
        assert_int_not_equal(ids[i - 1], ids[i]);
}

enum { WORKERS = 32, EACH = 4 };

static void threads_begin_at_ids_of_their_own_without_a_system_call(void **state)
{
    (void)state;
    static struct session_thread beside; /* always at the same address */
    uint64_t ids[WORKERS * EACH];
    unsigned before = asked;
    for (unsigned i = 0; i < WORKERS; i++) {
        session_thread_start_beside(&beside, &owner, 1 + i);
        for (unsigned j = 0; j < EACH; j++)
            ids[i * EACH + j] = session_thread_next_id(&beside);
        session_thread_stop(&beside);
    }
    assert_int_equal(asked, before);
    assert_different(ids, WORKERS * EACH);
}

static void children_begin_at_ids_of_their_own_without_a_system_call(void **state)
{
    (void)state;
    uint64_t ids[WORKERS * EACH];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    unsigned before = asked;
    for (unsigned i = 0; i < WORKERS; i++) {
        session_thread_divide(&owner);
        pid_t pid = fork();
        if (pid == 0) {
            uint64_t mine[EACH];
            session_thread_inherit(&owner);
            for (unsigned j = 0; j < EACH; j++)
                mine[j] = session_thread_next_id(&owner);
            bool good = write(ends[1], mine, sizeof(mine)) == (ssize_t)sizeof(mine);
            _exit(good && asked == before ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        ssize_t got = read(ends[0], &ids[i * EACH], EACH * sizeof(ids[0]));
        assert_int_equal(got, EACH * sizeof(ids[0]));
    }
    close(ends[0]);
    close(ends[1]);
    assert_different(ids, WORKERS * EACH);
}

static void a_burst_leaves_little_memory(void **state)
{
    (void)state;
    struct session_buffer *used[40];
    for (unsigned i = 0; i < 40; i++)
        assert_non_null(used[i] = session_buffer_take(&owner));
    for (unsigned i = 0; i < 40; i++)
        session_buffer_give(&owner, used[i]);
    const unsigned counts[] = { 20, 10, 5, 4, 4 };
    for (unsigned second = 0; second < 5; second++)
        for (unsigned turn = 0; turn < 3; turn++) {
            session_thread_tick(&owner, 1 + second, second);
            assert_int_equal(owner.spares.count, counts[second]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_begin_at_ids_of_their_own_without_a_system_call,
                                        make_owner, end_owner),
        cmocka_unit_test_setup_teardown(children_begin_at_ids_of_their_own_without_a_system_call,
                                        make_owner, end_owner),
        cmocka_unit_test_setup_teardown(a_burst_leaves_little_memory, make_owner, end_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
