/* SPDX-License-Identifier: MIT
 *
 * The table that counts the requests of addresses under rules.
 */
#include "session/meter.h"

#include "base/duration.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW  (1000 * DURATION_SECOND)
#define HOUR (3600 * DURATION_SECOND)

static struct session_meter *meter;

static int begin(void **state)
{
    (void)state;
    meter = calloc(1, sizeof(*meter));
    return meter ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    free(meter);
    return 0;
}

static uint64_t hash_of(uint32_t number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), 42);
}

/* The hash of the set 5 with this tag. */
static uint64_t hash_in_set(uint64_t tag)
{
    return tag << SESSION_METER_TIME_BITS | 5;
}

/* How many of so many addresses may send a request. */
static unsigned count_admitted(unsigned addresses, uint64_t now_ns)
{
    unsigned admitted = 0;
    for (uint32_t i = 0; i < addresses; i++)
        admitted += session_meter_take(meter, hash_of(i), HOUR, 1, now_ns) == 0;
    return admitted;
}

/* The table of 10,000 addresses under one request an hour. */
static void many_addresses_at_a_slow_rate_do_not_limit_each_other(void **state)
{
    (void)state;
    assert_in_range(count_admitted(10000, NOW), 9995, 10000);
    assert_in_range(count_admitted(10000, NOW + HOUR / 2), 0, 5);
    assert_in_range(count_admitted(10000, NOW + HOUR), 9995, 10000);
}

static void says_when_the_next_request_is_possible(void **state)
{
    (void)state;
    const uint64_t interval = DURATION_SECOND / 4;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW), 0);
    assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW), interval);
    assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW + 1000), interval - 1000);
    assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW + interval), 0);
    assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW + interval), interval);
    for (unsigned i = 0; i < 4; i++) /* no more is saved than that */
        assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW + HOUR), 0);
    assert_int_equal(session_meter_take(meter, 1, interval, 4, NOW + HOUR), interval);
}

static void the_largest_rate_and_burst_fit(void **state)
{
    (void)state;
    const uint64_t years = UINT64_C(5) * 365 * 24 * HOUR;
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(session_meter_take(meter, 1, HOUR, 10000, years), 0);
    assert_int_equal(session_meter_take(meter, 1, HOUR, 10000, years), HOUR);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(session_meter_take(meter, 2, DURATION_SECOND / 1000000, 10, NOW), 0);
    assert_int_equal(session_meter_take(meter, 2, DURATION_SECOND / 1000000, 10, NOW), 1000);
}

static void a_full_set_forgets_the_address_that_may_send_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SESSION_METER_SLOTS; i++)
        assert_int_equal(session_meter_take(meter, hash_in_set(i + 1), HOUR, 1, NOW + i * 1000), 0);
    const uint64_t later = NOW + DURATION_SECOND;
    assert_int_equal(session_meter_take(meter, hash_in_set(100), HOUR, 1, later), 0);
    for (unsigned i = 1; i < SESSION_METER_SLOTS; i++)
        assert_true(session_meter_take(meter, hash_in_set(i + 1), HOUR, 1, later) > 0);
    assert_true(session_meter_take(meter, hash_in_set(100), HOUR, 1, later) > 0);
    assert_int_equal(session_meter_take(meter, hash_in_set(1), HOUR, 1, later), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_addresses_at_a_slow_rate_do_not_limit_each_other,
                                        begin, end),
        cmocka_unit_test_setup_teardown(says_when_the_next_request_is_possible, begin, end),
        cmocka_unit_test_setup_teardown(the_largest_rate_and_burst_fit, begin, end),
        cmocka_unit_test_setup_teardown(a_full_set_forgets_the_address_that_may_send_first, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
