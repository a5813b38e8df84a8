/* SPDX-License-Identifier: MIT
 *
 * What is remembered about passwords: right credentials for some time, and the attempts of each
 * address. Child processes share both.
 */
#include "auth/memory.h"

#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW (UINT64_C(1000) * DURATION_SECOND)

static int make_memory(void **state)
{
    return auth_memory_new((struct auth_memory **)state);
}

static int end_memory(void **state)
{
    auth_memory_free(*state);
    return 0;
}

static struct auth_mark mark_of(const struct auth_memory *m, uint32_t list, const char *user,
                                const char *password)
{
    struct auth_mark mark;
    assert_true(auth_memory_mark(m, list, span_text(user), span_text(password), &mark));
    return mark;
}

static void remembers_credentials_for_some_time(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "alice", "sesame");
    const uint64_t end = NOW + AUTH_REMEMBER_S * DURATION_SECOND;
    assert_false(auth_memory_knows(m, &mark, NOW));
    auth_memory_add(m, &mark, NOW);
    assert_true(auth_memory_knows(m, &mark, NOW));
    assert_true(auth_memory_knows(m, &mark, end - 1));
    assert_false(auth_memory_knows(m, &mark, end));
}

static void knows_no_other_credentials(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "ab", "c");
    auth_memory_add(m, &mark, NOW);
    static const struct {
        uint32_t list;
        const char *user, *password;
    } others[] = {
        { 1, "ab", "c" }, { 0, "a", "bc" }, { 0, "abc", "" }, { 0, "ab", "" },
        { 0, "AB", "c" }, { 0, "ab", "d" }, { 0, "", "abc" },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct auth_mark other =
            mark_of(m, others[i].list, others[i].user, others[i].password);
        assert_false(auth_memory_knows(m, &other, NOW));
    }
    const struct auth_mark same = mark_of(m, 0, "ab", "c");
    assert_true(auth_memory_knows(m, &same, NOW));
}

static void each_memory_has_a_key_of_its_own(void **state)
{
    struct auth_memory *m = *state, *other = NULL;
    assert_int_equal(auth_memory_new(&other), 0);
    const struct auth_mark a = mark_of(m, 0, "alice", "sesame"),
                           b = mark_of(other, 0, "alice", "sesame");
    assert_memory_not_equal(&a, &b, sizeof(a));
    auth_memory_free(other);
}

/* The memory is bounded: it forgets, and what it knows is right. */
static void a_full_memory_forgets_others(void **state)
{
    enum { MANY = 20000 };
    struct auth_memory *m = *state;
    unsigned known = 0;
    char user[16];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(user, sizeof(user), "user%u", i);
        const struct auth_mark mark = mark_of(m, 0, user, "x");
        auth_memory_add(m, &mark, NOW);
        assert_true(auth_memory_knows(m, &mark, NOW));
    }
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(user, sizeof(user), "user%u", i);
        const struct auth_mark mark = mark_of(m, 0, user, "x");
        known += auth_memory_knows(m, &mark, NOW);
    }
    assert_in_range(known, 1, 1024);
}

static void children_share_the_memory(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "alice", "sesame");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        auth_memory_add(m, &mark, NOW);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(auth_memory_knows(m, &mark, NOW));
}

/* ---- attempts ---- */

static const uint8_t address[16] = { 192, 0, 2, 1 }, neighbour[16] = { 192, 0, 2, 2 };

static unsigned take_all(struct auth_memory *m, unsigned family, const uint8_t *from, uint64_t now)
{
    unsigned taken = 0;
    while (taken < 1000 && auth_memory_take_attempt(m, family, from, now))
        taken++;
    return taken;
}

static void an_address_has_some_attempts_and_gets_new_ones(void **state)
{
    struct auth_memory *m = *state;
    const uint64_t step = AUTH_ATTEMPT_S * DURATION_SECOND;
    assert_int_equal(take_all(m, 4, address, NOW), AUTH_ATTEMPTS);
    assert_int_equal(take_all(m, 4, neighbour, NOW), AUTH_ATTEMPTS);
    assert_int_equal(take_all(m, 4, address, NOW + step - 1), 0);
    assert_int_equal(take_all(m, 4, address, NOW + step), 1);
    assert_int_equal(take_all(m, 4, address, NOW + 4 * step), 3);
    assert_int_equal(take_all(m, 4, address, NOW + 1000 * step), AUTH_ATTEMPTS);
}

static void a_returned_attempt_does_not_count(void **state)
{
    struct auth_memory *m = *state;
    for (unsigned i = 0; i < 5 * AUTH_ATTEMPTS; i++) {
        assert_true(auth_memory_take_attempt(m, 4, address, NOW));
        auth_memory_return_attempt(m, 4, address);
    }
    assert_int_equal(take_all(m, 4, address, NOW), AUTH_ATTEMPTS);
}

static void a_network_of_ipv6_is_one_address(void **state)
{
    struct auth_memory *m = *state;
    static const uint8_t one[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 },
                         same[16] = { 0x20, 1, 0xd, 0xb8, [15] = 2 },
                         other[16] = { 0x20, 1, 0xd, 0xb8, [7] = 1 };
    assert_int_equal(take_all(m, 6, one, NOW), AUTH_ATTEMPTS);
    assert_int_equal(take_all(m, 6, same, NOW), 0);
    assert_int_equal(take_all(m, 6, other, NOW), AUTH_ATTEMPTS);
}

static void a_unix_socket_has_no_limit(void **state)
{
    assert_int_equal(take_all(*state, 0, address, NOW), 1000);
}

/* ---- comparisons under way ---- */

static void one_request_compares_and_some_follow(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "alice", "sesame"),
                           other = mark_of(m, 0, "alice", "other");
    assert_false(auth_memory_follow(m, &mark, NOW));
    assert_true(auth_memory_compare_later(m, &mark, NOW));
    assert_false(auth_memory_compare_later(m, &mark, NOW));
    assert_false(auth_memory_is_comparing(m, &other, NOW, false));
    assert_false(auth_memory_is_comparing(m, &mark, NOW, true));
    auth_memory_compare_begins(m, &mark);
    assert_true(auth_memory_is_comparing(m, &mark, NOW, true));
    for (unsigned i = 0; i < AUTH_FOLLOWERS_MAX; i++)
        assert_true(auth_memory_follow(m, &mark, NOW));
    assert_false(auth_memory_follow(m, &mark, NOW));
    auth_memory_unfollow(m);
    assert_true(auth_memory_follow(m, &mark, NOW));
    auth_memory_compare_ends(m, &other); /* it has no note */
    assert_true(auth_memory_is_comparing(m, &mark, NOW, false));
    auth_memory_compare_ends(m, &mark);
    assert_false(auth_memory_is_comparing(m, &mark, NOW, false));
}

/* Its process may have been killed. */
static void a_comparison_without_an_end_is_forgotten(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "alice", "sesame");
    const uint64_t end = NOW + AUTH_COMPARE_S * DURATION_SECOND;
    assert_true(auth_memory_compare_later(m, &mark, NOW));
    assert_true(auth_memory_is_comparing(m, &mark, end - 1, false));
    assert_false(auth_memory_is_comparing(m, &mark, end, false));
    assert_true(auth_memory_compare_later(m, &mark, end));
}

static void a_memory_that_is_held_outlives_its_owner(void **state)
{
    struct auth_memory *m = *state;
    const struct auth_mark mark = mark_of(m, 0, "alice", "sesame");
    auth_memory_hold(m);
    auth_memory_free(m);
    auth_memory_add(m, &mark, NOW);
    assert_true(auth_memory_knows(m, &mark, NOW));
    auth_memory_release(m);
    *state = NULL;
}

#define WITH_MEMORY(test) cmocka_unit_test_setup_teardown(test, make_memory, end_memory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MEMORY(remembers_credentials_for_some_time),
        WITH_MEMORY(knows_no_other_credentials),
        WITH_MEMORY(each_memory_has_a_key_of_its_own),
        WITH_MEMORY(a_full_memory_forgets_others),
        WITH_MEMORY(children_share_the_memory),
        WITH_MEMORY(an_address_has_some_attempts_and_gets_new_ones),
        WITH_MEMORY(a_returned_attempt_does_not_count),
        WITH_MEMORY(a_network_of_ipv6_is_one_address),
        WITH_MEMORY(a_unix_socket_has_no_limit),
        WITH_MEMORY(one_request_compares_and_some_follow),
        WITH_MEMORY(a_comparison_without_an_end_is_forgotten),
        WITH_MEMORY(a_memory_that_is_held_outlives_its_owner),
    };
    return cmocka_run_group_tests_name("auth/memory", tests, NULL, NULL);
}
