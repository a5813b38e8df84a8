/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void decodes_each_length_at_its_edges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t code;
    } rows[] = {
        { "\x01", 1 },
        { "\x7f", 0x7f },
        { "\xc2\x80", 0x80 },
        { "\xdf\xbf", 0x7ff },
        { "\xe0\xa0\x80", 0x800 },
        { "\xed\x9f\xbf", 0xd7ff },
        { "\xee\x80\x80", 0xe000 },
        { "\xef\xbf\xbf", 0xffff },
        { "\xf0\x90\x80\x80", 0x10000 },
        { "\xf4\x8f\xbf\xbf", 0x10ffff },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        uint32_t code = 99;
        struct span text = guard_text(&guard, rows[i].text);
        assert_int_equal(utf8_decode(text, &code), text.len);
        assert_int_equal(code, rows[i].code);
        for (size_t len = 0; len < text.len; len++)
            assert_int_equal(utf8_decode(span_first(text, len), &code), 0);
        guard_done(&guard);
    }
}

static void refuses_what_is_not_utf8(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\x80",             /* a continuation byte */
        "\xc0\x80",         /* overlong */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xed\xbf\xbf",     /* a surrogate */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80", /* above U+10FFFF */
        "\xff",             /* never in UTF-8 */
        "\xe2(\xa1",        /* a second byte that continues nothing */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t code = 99;
        assert_int_equal(utf8_decode(span_text(rows[i]), &code), 0);
        assert_int_equal(code, 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_each_length_at_its_edges),
        cmocka_unit_test(refuses_what_is_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
