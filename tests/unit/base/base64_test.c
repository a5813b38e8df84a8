/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void encodes_and_decodes_the_vectors_of_the_rfc(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        /* RFC 4648 section 10 */
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[16] = "";
        uint8_t bytes[16];
        size_t len = 99, bare = strcspn(rows[i].text, "=");
        base64_encode((const uint8_t *)rows[i].bytes, strlen(rows[i].bytes), text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(strlen(text), BASE64_CHARS(strlen(rows[i].bytes)));
        for (unsigned padded = 0; padded < 2; padded++) {
            struct guard guard;
            struct span in = guard_text(&guard, rows[i].text);
            if (!padded)
                in = span_first(in, bare);
            assert_true(base64_decode(in, bytes, sizeof(bytes), &len));
            assert_int_equal(len, strlen(rows[i].bytes));
            assert_memory_equal(bytes, rows[i].bytes, len);
            assert_true(len <= BASE64_BYTES(in.len));
            guard_done(&guard);
        }
    }
}

static void all_byte_values_survive(void **state)
{
    (void)state;
    uint8_t in[256], out[256];
    char text[BASE64_CHARS(sizeof(in))];
    size_t len;
    for (unsigned i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(255 - i);
    base64_encode(in, sizeof(in), text);
    assert_true(base64_decode(span_of(text, sizeof(text)), out, sizeof(out), &len));
    assert_int_equal(len, sizeof(in));
    assert_memory_equal(in, out, sizeof(in));
}

static void refuses_what_is_not_base64(void **state)
{
    (void)state;
    static const char *const wrong[] = { "Z",     "Zg=",  "Z===", "Zg==Zg==", "Zm 8",
                                         "Zm9\n", "====", "=",    "Zm9vY",    "-_8=" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t bytes[16];
        size_t len;
        if (base64_decode(span_text(wrong[i]), bytes, sizeof(bytes), &len))
            fail_msg("`%s` is taken", wrong[i]);
    }
}

static void never_writes_beyond_the_storage(void **state)
{
    (void)state;
    uint8_t bytes[4] = { 0, 0, 0, 0x5a };
    size_t len;
    assert_true(base64_decode(SPAN("Zm9v"), bytes, 3, &len));
    assert_false(base64_decode(SPAN("Zm9vYg"), bytes, 3, &len));
    assert_int_equal(bytes[3], 0x5a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_and_decodes_the_vectors_of_the_rfc),
        cmocka_unit_test(all_byte_values_survive),
        cmocka_unit_test(refuses_what_is_not_base64),
        cmocka_unit_test(never_writes_beyond_the_storage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
