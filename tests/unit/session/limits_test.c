/* SPDX-License-Identifier: MIT
 *
 * The limits of each address.
 */
#include "session/limits.h"

#include "base/duration.h"
#include "session/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WORKERS = 2 };

#define NOW (1000 * DURATION_SECOND)

static struct session_limits limits;

static int begin(void **state)
{
    (void)state;
    struct session_limits_memory *memory = calloc(1, session_limits_bytes(WORKERS));
    if (!memory)
        return -1;
    limits = (struct session_limits){ .memory = memory, .workers = WORKERS, .key = 42 };
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(limits.memory);
    return 0;
}

static struct session_peer v4(uint8_t last)
{
    return (struct session_peer){ .family = 4, .address = { 192, 0, 2, last } };
}

static void limits_the_connections_of_an_address_over_all_workers(void **state)
{
    (void)state;
    limits.connections = 3;
    struct session_peer peer[4], other = v4(2);
    for (unsigned i = 0; i < 4; i++) {
        peer[i] = v4(1);
        limits.worker = i % WORKERS;
        assert_int_equal(session_limits_admit(&limits, &peer[i], NOW), i < 3);
    }
    assert_true(session_limits_admit(&limits, &other, NOW));
    limits.worker = 0;
    session_limits_release(&limits, &peer[0]);
    assert_true(session_limits_admit(&limits, &peer[3], NOW));
}

static void a_successor_of_a_worker_begins_with_no_connection(void **state)
{
    (void)state;
    limits.connections = 2;
    struct session_peer first = v4(1), second = v4(1), third = v4(1);
    limits.worker = 0;
    assert_true(session_limits_admit(&limits, &first, NOW));
    limits.worker = 1;
    assert_true(session_limits_admit(&limits, &second, NOW));
    assert_false(session_limits_admit(&limits, &third, NOW));
    session_limits_clear(&limits);
    assert_true(session_limits_admit(&limits, &third, NOW));
}

/* With `fork` a process for a connection may outlive the worker that has counted it. */
static void connections_of_a_dead_worker_count_no_more(void **state)
{
    (void)state;
    limits.connections = 2;
    struct session_peer before = v4(1), late = v4(1), next = v4(1), other = v4(1), third = v4(1);
    const struct session_limits orphan = limits;
    assert_true(session_limits_admit(&orphan, &before, NOW));
    session_limits_clear(&limits);
    session_limits_release(&orphan, &before);
    assert_true(session_limits_admit(&orphan, &late, NOW));
    assert_true(session_limits_admit(&limits, &next, NOW));
    assert_true(session_limits_admit(&limits, &other, NOW));
    assert_false(session_limits_admit(&limits, &third, NOW));
    session_limits_release(&orphan, &late);
    assert_false(session_limits_admit(&limits, &third, NOW));
}

static void saves_unused_requests_for_ten_seconds(void **state)
{
    (void)state;
    limits.request_interval_ns = DURATION_SECOND / 5;
    struct session_peer peer = v4(1);
    assert_true(session_limits_admit(&limits, &peer, NOW));
    for (unsigned i = 0; i < 5 * SESSION_LIMITS_SAVED_S; i++)
        assert_true(session_limits_take_request(&limits, &peer, NOW));
    assert_false(session_limits_take_request(&limits, &peer, NOW));
    uint64_t later = NOW + DURATION_SECOND;
    for (unsigned i = 0; i < 5; i++)
        assert_true(session_limits_take_request(&limits, &peer, later));
    assert_false(session_limits_take_request(&limits, &peer, later));
}

static void one_request_in_twenty_seconds_is_possible(void **state)
{
    (void)state;
    limits.request_interval_ns = 20 * DURATION_SECOND;
    struct session_peer peer = v4(1);
    assert_true(session_limits_admit(&limits, &peer, NOW));
    assert_true(session_limits_take_request(&limits, &peer, NOW));
    assert_false(session_limits_take_request(&limits, &peer, NOW + 19 * DURATION_SECOND));
    assert_true(session_limits_take_request(&limits, &peer, NOW + 20 * DURATION_SECOND));
}

static uint64_t take_path(const struct session_peer *peer, uint32_t rule, uint64_t now_ns)
{
    return session_limits_take_path(&limits, peer, rule, 20 * DURATION_SECOND, 3, now_ns);
}

static void a_rule_limits_the_requests_of_an_address(void **state)
{
    (void)state;
    struct session_peer peer = v4(1), other = v4(2), socket = { 0 };
    assert_true(session_limits_admit(&limits, &peer, NOW));
    assert_true(session_limits_admit(&limits, &other, NOW));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(take_path(&peer, 1, NOW), 0);
    assert_int_equal(take_path(&peer, 1, NOW), 20 * DURATION_SECOND);
    assert_int_equal(take_path(&peer, 1, NOW + 19 * DURATION_SECOND), DURATION_SECOND);
    assert_int_equal(take_path(&peer, 1, NOW + 20 * DURATION_SECOND), 0);
    assert_int_equal(take_path(&peer, 1, NOW + 20 * DURATION_SECOND), 20 * DURATION_SECOND);
    assert_int_equal(take_path(&peer, 2, NOW), 0); /* each rule has its own count */
    assert_int_equal(take_path(&other, 1, NOW), 0);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(take_path(&socket, 1, NOW), 0);
}

/* A slow rate of one rule takes nothing from the fast rate of another. */
static void rules_with_different_rates_share_no_count(void **state)
{
    (void)state;
    struct session_peer peer = v4(1);
    assert_true(session_limits_admit(&limits, &peer, NOW));
    assert_int_equal(session_limits_take_path(&limits, &peer, 1, 3600 * DURATION_SECOND, 1, NOW),
                     0);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(session_limits_take_path(&limits, &peer, 2, DURATION_SECOND / 5, 50, NOW),
                         0);
    assert_int_equal(session_limits_take_path(&limits, &peer, 2, DURATION_SECOND / 5, 50, NOW),
                     DURATION_SECOND / 5);
    assert_int_equal(session_limits_take_path(&limits, &peer, 1, 3600 * DURATION_SECOND, 1,
                                              NOW + DURATION_SECOND),
                     3599 * DURATION_SECOND);
}

static void limits_how_fast_an_address_connects(void **state)
{
    (void)state;
    limits.connection_interval_ns = DURATION_SECOND;
    for (unsigned i = 0; i < 2 * SESSION_LIMITS_SAVED_S; i++) {
        struct session_peer peer = v4(1);
        assert_int_equal(session_limits_admit(&limits, &peer, NOW), i < SESSION_LIMITS_SAVED_S);
        session_limits_release(&limits, &peer); /* of one that was refused: nothing */
    }
}

static void addresses_of_one_ipv6_network_are_one(void **state)
{
    (void)state;
    limits.connections = 1;
    struct session_peer one = { .family = 6, .address = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 1 } };
    struct session_peer same = one, other = one;
    same.address[15] = 7;
    other.address[7] = 2;
    assert_true(session_limits_admit(&limits, &one, NOW));
    assert_false(session_limits_admit(&limits, &same, NOW));
    assert_true(session_limits_admit(&limits, &other, NOW));
}

static void exempt_networks_and_unix_sockets_have_no_limit(void **state)
{
    (void)state;
    struct peer_network exempt[2];
    assert_true(peer_network_parse(SPAN("192.0.2.0/28"), &exempt[0]));
    assert_true(peer_network_parse(SPAN("2001:db8::/33"), &exempt[1]));
    limits.exempt = (struct peer_networks){ .each = exempt, .count = 2 };
    limits.connections = 1;
    limits.request_interval_ns = 100 * DURATION_SECOND;
    const struct {
        struct session_peer peer;
        bool limited;
    } cases[] = {
        { { .family = 0 }, false },
        { v4(15), false },
        { v4(16), true },
        { { .family = 6, .address = { 0x20, 1, 0xd, 0xb8, 0x7f } }, false },
        { { .family = 6, .address = { 0x20, 1, 0xd, 0xb8, 0x80 } }, true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct session_peer first = cases[i].peer, second = cases[i].peer;
        assert_true(session_limits_admit(&limits, &first, NOW));
        assert_int_equal(session_limits_admit(&limits, &second, NOW), !cases[i].limited);
        assert_true(session_limits_take_request(&limits, &first, NOW));
        assert_int_equal(session_limits_take_request(&limits, &first, NOW), !cases[i].limited);
    }
}

static void many_addresses_do_not_use_up_each_others_connections(void **state)
{
    (void)state;
    enum { ADDRESSES = 5000 };
    limits.connections = 2;
    unsigned refused = 0;
    for (unsigned i = 0; i < ADDRESSES; i++) {
        struct session_peer peer = { .family = 4,
                                     .address = { 10, 0, (uint8_t)(i >> 8), (uint8_t)i } };
        for (unsigned k = 0; k < 2; k++)
            refused += !session_limits_admit(&limits, &peer, NOW);
    }
    assert_in_range(refused, 0, 2 * ADDRESSES / 20);
}

static void an_address_passes_through_one_number(void **state)
{
    (void)state;
    struct session_peer peer = v4(1), none = v4(2);
    limits.connections = 9;
    assert_true(session_limits_admit(&limits, &peer, NOW));
    struct session_peer same = session_peer_unpack(session_peer_pack(&peer));
    assert_true(same.limited);
    assert_memory_equal(same.place, peer.place, sizeof(same.place));
    assert_int_equal(session_peer_pack(&none), 0);
    assert_false(session_peer_unpack(0).limited);
    session_limits_release(&limits, &same);
    struct session_peer again[9];
    for (unsigned i = 0; i < 9; i++) {
        again[i] = v4(1);
        assert_true(session_limits_admit(&limits, &again[i], NOW));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(limits_the_connections_of_an_address_over_all_workers,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_successor_of_a_worker_begins_with_no_connection, begin,
                                        end),
        cmocka_unit_test_setup_teardown(connections_of_a_dead_worker_count_no_more, begin, end),
        cmocka_unit_test_setup_teardown(saves_unused_requests_for_ten_seconds, begin, end),
        cmocka_unit_test_setup_teardown(one_request_in_twenty_seconds_is_possible, begin, end),
        cmocka_unit_test_setup_teardown(a_rule_limits_the_requests_of_an_address, begin, end),
        cmocka_unit_test_setup_teardown(rules_with_different_rates_share_no_count, begin, end),
        cmocka_unit_test_setup_teardown(limits_how_fast_an_address_connects, begin, end),
        cmocka_unit_test_setup_teardown(addresses_of_one_ipv6_network_are_one, begin, end),
        cmocka_unit_test_setup_teardown(exempt_networks_and_unix_sockets_have_no_limit, begin, end),
        cmocka_unit_test_setup_teardown(many_addresses_do_not_use_up_each_others_connections, begin,
                                        end),
        cmocka_unit_test_setup_teardown(an_address_passes_through_one_number, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
