/* SPDX-License-Identifier: MIT
 *
 * Every fast scan equals its scalar twin: at every length up to several steps, at every alignment,
 * with each byte at each place, and on random runs. Forbidden memory follows each run directly.
 */
#include "base/scan.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { RUN_MAX = 70, ROUNDS = 200 * 1000 };

typedef size_t scanner(const char *at, size_t len);

static const struct twins {
    const char *name;
    scanner *fast;
    scanner *scalar;
} twins[] = {
    { "field_value_end", scan_field_value_end, scan_field_value_end_scalar },
    { "target_end", scan_target_end, scan_target_end_scalar },
    { "plain_name_end", scan_plain_name_end, scan_plain_name_end_scalar },
    { "log_unsafe", scan_log_unsafe, scan_log_unsafe_scalar },
    { "path_special", scan_path_special, scan_path_special_scalar },
};
enum { TWIN_COUNT = sizeof(twins) / sizeof(twins[0]) };

static void compare(const char *at, size_t len)
{
    for (size_t t = 0; t < TWIN_COUNT; t++) {
        size_t fast = twins[t].fast(at, len);
        size_t scalar = twins[t].scalar(at, len);
        if (fast != scalar)
            fail_msg("%s of %zu bytes: %zu, its scalar twin %zu", twins[t].name, len, fast, scalar);
    }
}

static void equals_its_twin_for_each_byte_at_each_place_of_each_length(void **state)
{
    (void)state;
    struct guard guard;
    char *end = guard_room(&guard, RUN_MAX) + RUN_MAX;

    for (size_t len = 0; len <= RUN_MAX; len++) {
        char *at = end - len;
        memset(at, 'a', len);
        compare(at, len);
        for (size_t i = 0; i < len; i++) {
            for (unsigned c = 0; c < 256; c++) {
                at[i] = (char)c;
                compare(at, len);
            }
            at[i] = 'a';
        }
    }
    guard_done(&guard);
}

static void equals_its_twin_for_each_pair_of_path_bytes(void **state)
{
    (void)state;
    static const char bytes[] = "/.%a";
    struct guard guard;
    char *end = guard_room(&guard, RUN_MAX) + RUN_MAX;

    for (size_t len = 2; len <= RUN_MAX; len++) {
        char *at = end - len;
        memset(at, 'a', len);
        for (size_t i = 0; i + 1 < len; i++) {
            for (size_t pair = 0; pair < 16; pair++) {
                at[i] = bytes[pair / 4];
                at[i + 1] = bytes[pair % 4];
                compare(at, len);
            }
            at[i] = at[i + 1] = 'a';
        }
    }
    guard_done(&guard);
}

static void equals_its_twin_on_random_runs_at_every_alignment(void **state)
{
    (void)state;
    static const char likely[] = "abcXYZ019-/./.: \t\r\n\"\\%?#\x7f\x80\xff";
    struct random_source random = random_start();
    struct guard guard;
    char *room = guard_room(&guard, RUN_MAX);

    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t start = random_below(&random, RUN_MAX);
        size_t len = random_below(&random, RUN_MAX - start + 1);
        size_t odds = 1 + random_below(&random, 40);
        for (size_t i = start; i < start + len; i++)
            room[i] = random_one_in(&random, odds) ? likely[random_below(&random, sizeof(likely))]
                                                   : 'n';
        compare(room + start, len);
    }
    guard_done(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_its_twin_for_each_byte_at_each_place_of_each_length),
        cmocka_unit_test(equals_its_twin_for_each_pair_of_path_bytes),
        cmocka_unit_test(equals_its_twin_on_random_runs_at_every_alignment),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
