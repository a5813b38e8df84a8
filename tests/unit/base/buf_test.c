/* SPDX-License-Identifier: MIT
 *
 * The bounded writer: what fits, what does not, and what it writes for numbers.
 */
#include "base/buf.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_text(const struct buf *b, const char *want)
{
    assert_int_equal(b->len, strlen(want));
    assert_memory_equal(b->at, want, b->len);
}

static void appends_in_order(void **state)
{
    (void)state;
    char storage[32];
    struct buf b = buf_over(storage, sizeof(storage));

    buf_add(&b, SPAN("abc"));
    buf_add(&b, SPAN(""));
    buf_add_char(&b, '-');
    buf_add_u64(&b, 0);
    buf_add_u64(&b, 1234567890123);
    assert_text(&b, "abc-01234567890123");
    assert_false(b.overflow);
    assert_int_equal(buf_room(&b), sizeof(storage) - b.len);
    assert_true(span_equal(buf_span(&b), SPAN("abc-01234567890123")));
}

static void writes_the_requested_number_of_hexadecimal_digits(void **state)
{
    (void)state;
    char storage[64];
    struct buf b = buf_over(storage, sizeof(storage));

    buf_add_hex(&b, 0xab, 1);
    buf_add_hex(&b, 0xab, 2);
    buf_add_hex(&b, 0xab, 4);
    buf_add_hex(&b, UINT64_MAX - 1, 16);
    assert_text(&b, "bab00abfffffffffffffffe");
}

static void fills_its_storage_to_the_last_byte(void **state)
{
    (void)state;
    struct guard guard;
    struct buf b = buf_over(guard_room(&guard, 4), 4);

    buf_add(&b, SPAN("abcd"));
    assert_text(&b, "abcd");
    assert_false(b.overflow);
    buf_add(&b, SPAN(""));
    assert_false(b.overflow);
    buf_add_char(&b, 'e');
    assert_true(b.overflow);
    assert_text(&b, "abcd");
    guard_done(&guard);
}

static void adds_all_of_a_piece_or_nothing_and_nothing_after_it(void **state)
{
    (void)state;
    struct guard guard;
    struct buf b = buf_over(guard_room(&guard, 4), 4);

    buf_add(&b, SPAN("ab"));
    buf_add_u64(&b, 123);
    assert_true(b.overflow);
    buf_add_char(&b, 'c'); /* would fit, but the whole would read wrong */
    assert_text(&b, "ab");
    guard_done(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_in_order),
        cmocka_unit_test(writes_the_requested_number_of_hexadecimal_digits),
        cmocka_unit_test(fills_its_storage_to_the_last_byte),
        cmocka_unit_test(adds_all_of_a_piece_or_nothing_and_nothing_after_it),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
