/* SPDX-License-Identifier: MIT
 *
 * Bytes come out in the order they went in, in whatever pieces, and no more go in
 * than may wait.
 */
#include "model/ringearly.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void first_in_first_out(void **state)
{
    (void)state;
    struct model_ringearly *early = NULL;
    char next_in = 0;
    char next_out = 0;
    for (size_t turn = 1; turn < 50; turn++) {
        char bytes[64];
        for (size_t i = 0; i < turn; i++)
            bytes[i] = next_in++;
        assert_true(model_ringearly_keep(&early, span_of(bytes, turn)));
        for (size_t taken = 0; early && taken < turn - turn / 4; taken++) {
            assert_int_equal(model_ringearly_bytes(early).at[0], next_out++);
            model_ringearly_drop(&early, 1);
        }
    }
    while (early) {
        assert_int_equal(model_ringearly_bytes(early).at[0], next_out++);
        model_ringearly_drop(&early, 1);
    }
    assert_int_equal(next_out, next_in);
}

static void what_is_too_much_changes_nothing(void **state)
{
    (void)state;
    struct model_ringearly *early = NULL;
    char *bytes = calloc(1, RINGEARLY_MAX);
    assert_non_null(bytes);
    assert_true(model_ringearly_keep(&early, span_of("x", 1)));
    assert_false(model_ringearly_keep(&early, span_of(bytes, RINGEARLY_MAX)));
    assert_int_equal(model_ringearly_bytes(early).len, 1);
    assert_true(model_ringearly_keep(&early, span_of(bytes, RINGEARLY_MAX - 1)));
    assert_int_equal(model_ringearly_bytes(early).len, RINGEARLY_MAX);
    assert_false(model_ringearly_keep(&early, span_of("x", 1)));
    model_ringearly_free(early);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(what_is_too_much_changes_nothing),
    };
    return cmocka_run_group_tests_name("ringearly", tests, NULL, NULL);
}
