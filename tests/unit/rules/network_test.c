/* SPDX-License-Identifier: MIT
 *
 * Which addresses a list of networks admits.
 */
#include "rules/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define V4(a, b, c, d) \
    { \
        a, b, c, d \
    }
#define ADMIT(f, n, ...) \
    { \
        .family = f, .bits = n, .address = __VA_ARGS__, .admits = true \
    }
#define DENY(f, n, ...) \
    { \
        .family = f, .bits = n, .address = __VA_ARGS__ \
    }
#define ALL(yes) \
    { \
        .admits = yes \
    }

enum { ROWS_MAX = 4 };

struct row {
    struct rules_network networks[ROWS_MAX];
    size_t count;
    uint8_t family, address[16];
    bool admitted;
};

/* Each list is tried in every rotation: the order must not matter. */
static void assert_row(const struct row *row, size_t number)
{
    struct rules_network turned[ROWS_MAX];
    for (size_t first = 0; first < (row->count > 0 ? row->count : 1); first++) {
        for (size_t i = 0; i < row->count; i++)
            turned[i] = row->networks[(first + i) % row->count];
        if (rules_network_admits(turned, row->count, row->family, row->address) != row->admitted)
            fail_msg("row %zu, from network %zu on", number, first);
    }
}

static void the_smallest_network_decides(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { .family = 4, .address = V4(1, 2, 3, 4), .admitted = true },
        { .family = 0, .admitted = true },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)) }, 1, 4, V4(10, 255, 0, 1), true },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)) }, 1, 4, V4(11, 0, 0, 1), false },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)) }, 1, 6, { 10 }, false },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)) }, 1, 0, { 0 }, false },
        { { DENY(4, 8, V4(10, 0, 0, 0)) }, 1, 4, V4(10, 0, 0, 1), false },
        { { DENY(4, 8, V4(10, 0, 0, 0)) }, 1, 4, V4(11, 0, 0, 1), true },
        { { DENY(4, 8, V4(10, 0, 0, 0)) }, 1, 0, { 0 }, true },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)), DENY(4, 24, V4(10, 0, 9, 0)) },
          2,
          4,
          V4(10, 0, 9, 1),
          false },
        { { ADMIT(4, 8, V4(10, 0, 0, 0)), DENY(4, 24, V4(10, 0, 9, 0)) },
          2,
          4,
          V4(10, 0, 8, 1),
          true },
        { { DENY(4, 8, V4(10, 0, 0, 0)), ADMIT(4, 32, V4(10, 0, 9, 1)) },
          2,
          4,
          V4(10, 0, 9, 1),
          true },
        { { DENY(4, 8, V4(10, 0, 0, 0)), ADMIT(4, 32, V4(10, 0, 9, 1)) },
          2,
          4,
          V4(11, 0, 0, 1),
          false },
        { { ADMIT(4, 0, V4(0, 0, 0, 0)), DENY(4, 1, V4(128, 0, 0, 0)) },
          2,
          4,
          V4(129, 0, 0, 1),
          false },
        { { ADMIT(4, 0, V4(0, 0, 0, 0)), DENY(4, 1, V4(128, 0, 0, 0)) },
          2,
          4,
          V4(127, 0, 0, 1),
          true },
        { { ALL(false), ADMIT(4, 0, V4(0, 0, 0, 0)) }, 2, 4, V4(1, 1, 1, 1), true },
        { { ALL(true), DENY(4, 0, V4(0, 0, 0, 0)) }, 2, 4, V4(1, 1, 1, 1), false },
        { { ALL(true), DENY(4, 0, V4(0, 0, 0, 0)) }, 2, 6, { 1 }, true },
        { { ALL(true), DENY(4, 0, V4(0, 0, 0, 0)) }, 2, 0, { 0 }, true },
        { { ALL(false), ADMIT(6, 33, { 0x20, 1, 0xd, 0xb8, 0x80 }) },
          2,
          6,
          { 0x20, 1, 0xd, 0xb8, 0xff },
          true },
        { { ALL(false), ADMIT(6, 33, { 0x20, 1, 0xd, 0xb8, 0x80 }) },
          2,
          6,
          { 0x20, 1, 0xd, 0xb8, 0x7f },
          false },
        { { ALL(false), ADMIT(6, 128, { [15] = 1 }) }, 2, 6, { [15] = 1 }, true },
        { { ALL(false), ADMIT(6, 128, { [15] = 1 }) }, 2, 6, { [15] = 2 }, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_row(&rows[i], i);
}

static void equal_networks_may_be_written_in_two_ways(void **state)
{
    (void)state;
    static const struct rules_network a = ADMIT(4, 9, V4(10, 0x80, 0, 0)),
                                      b = DENY(4, 9, V4(10, 0xff, 1, 2)),
                                      c = DENY(4, 9, V4(10, 0x7f, 1, 2)),
                                      d = DENY(4, 10, V4(10, 0x80, 0, 0)),
                                      e = DENY(6, 9, { 10, 0x80 });
    assert_true(rules_network_equal(&a, &b));
    assert_false(rules_network_equal(&a, &c));
    assert_false(rules_network_equal(&a, &d));
    assert_false(rules_network_equal(&a, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_network_decides),
        cmocka_unit_test(equal_networks_may_be_written_in_two_ways),
    };
    return cmocka_run_group_tests_name("rules/network", tests, NULL, NULL);
}
