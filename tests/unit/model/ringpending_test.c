/* SPDX-License-Identifier: MIT
 *
 * Bytes leave in the order in which they arrived, in pieces of any size. The number of bytes that
 * wait is limited.
 */
#include "model/ringpending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void returns_the_bytes_in_the_order_of_their_arrival(void **state)
{
    (void)state;
    struct model_ringpending *pending = NULL;
    char next_in = 0;
    char next_out = 0;
    for (size_t turn = 1; turn < 50; turn++) {
        char bytes[64];
        for (size_t i = 0; i < turn; i++)
            bytes[i] = next_in++;
        assert_true(model_ringpending_keep(&pending, span_of(bytes, turn)));
        for (size_t taken = 0; pending && taken < turn - turn / 4; taken++) {
            assert_int_equal(model_ringpending_bytes(pending).at[0], next_out++);
            model_ringpending_drop(&pending, 1);
        }
    }
    while (pending) {
        assert_int_equal(model_ringpending_bytes(pending).at[0], next_out++);
        model_ringpending_drop(&pending, 1);
    }
    assert_int_equal(next_out, next_in);
}

static void refuses_more_than_the_limit_and_changes_nothing(void **state)
{
    (void)state;
    struct model_ringpending *pending = NULL;
    char *bytes = calloc(1, RINGPENDING_MAX);
    assert_non_null(bytes);
    assert_true(model_ringpending_keep(&pending, span_of("x", 1)));
    assert_false(model_ringpending_keep(&pending, span_of(bytes, RINGPENDING_MAX)));
    assert_int_equal(model_ringpending_bytes(pending).len, 1);
    assert_true(model_ringpending_keep(&pending, span_of(bytes, RINGPENDING_MAX - 1)));
    assert_int_equal(model_ringpending_bytes(pending).len, RINGPENDING_MAX);
    assert_false(model_ringpending_keep(&pending, span_of("x", 1)));
    model_ringpending_free(pending);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_the_bytes_in_the_order_of_their_arrival),
        cmocka_unit_test(refuses_more_than_the_limit_and_changes_nothing),
    };
    return cmocka_run_group_tests_name("ringpending", tests, NULL, NULL);
}
