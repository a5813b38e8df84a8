/* SPDX-License-Identifier: MIT
 *
 * Random frames and answers: weir and libnghttp2 agree on replies, streams and windows, or differ
 * in a way that is explained.
 */
#include "frames_oracle.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SCRIPTS = 20 * 1000, SCRIPT_BYTES = 600 };

static void agrees_with_nghttp2(void **state)
{
    (void)state;
    struct random_source source = random_start();
    unsigned long steps = 0;
    for (unsigned i = 0; i < SCRIPTS; i++) {
        uint8_t script[SCRIPT_BYTES];
        for (size_t at = 0; at < sizeof(script); at++)
            script[at] = (uint8_t)random_u64(&source);
        steps += oracle_play(script, sizeof(script));
    }
    print_message("%lu steps for each script\n", steps / SCRIPTS);
    assert_true(steps > 5ul * SCRIPTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(agrees_with_nghttp2) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
