/* SPDX-License-Identifier: MIT
 *
 * The clocks agree with those of the C library, in the units of their names.
 */
#include "base/duration.h"
#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

static void the_monotonic_clock_never_runs_backwards_and_is_never_0(void **state)
{
    (void)state;
    uint64_t last_ns = os_clock_now_ns();
    assert_true(last_ns > 0);
    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t now_ns = os_clock_now_ns();
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    assert_true(last_ns / DURATION_SECOND <= (uint64_t)now.tv_sec);
    assert_true(last_ns / DURATION_SECOND + 60 > (uint64_t)now.tv_sec);
}

static void a_wait_is_never_too_short_and_at_most_a_day(void **state)
{
    (void)state;
    assert_int_equal(os_clock_wait_ms(UINT64_MAX), -1);
    assert_int_equal(os_clock_wait_ms(1), 0);
    assert_int_equal(os_clock_wait_ms(UINT64_MAX - 1), 24 * 3600 * 1000);
    const uint64_t day_ns = UINT64_C(24) * 3600 * 1000000000; /* 25 days in ms exceed an int */
    assert_int_equal(os_clock_wait_from_ms(5 + 25 * day_ns, 5), 24 * 3600 * 1000);
    assert_int_equal(os_clock_wait_from_ms(7, 5), 1);
    assert_int_equal(os_clock_wait_from_ms(5, 5), 0);
    assert_int_equal(os_clock_wait_from_ms(UINT64_MAX, 5), -1);
    const uint64_t due_ns = os_clock_now_ns() + 60 * DURATION_SECOND;
    assert_in_range(os_clock_wait_ms(due_ns), 50000, 60001);
}

static void the_wall_clocks_agree(void **state)
{
    (void)state;
    const int64_t wall_ms = os_clock_wall_ms();
    const int64_t wall_s = os_clock_wall_s();
    const int64_t libc_s = time(NULL);
    assert_in_range(wall_s - wall_ms / 1000 + 60, 59, 120); /* the coarse one is a tick behind */
    assert_in_range(libc_s - wall_s + 60, 59, 120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_monotonic_clock_never_runs_backwards_and_is_never_0),
        cmocka_unit_test(a_wait_is_never_too_short_and_at_most_a_day),
        cmocka_unit_test(the_wall_clocks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
