/* SPDX-License-Identifier: MIT
 *
 * The Huffman code of HPACK: each symbol, the end of a code, and the space for the text.
 */
#include "http2/huffman.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROOM = 4096, EOS_BITS = 30 };

/* Decodes from guarded memory to guarded memory. */
static long decode(struct span code, char *text, size_t room)
{
    struct guard code_guard, text_guard;
    struct span guarded = guard_copy(&code_guard, code);
    char *out = guard_room(&text_guard, room);
    long len = http2_huffman_decode(guarded, out, room);
    if (len > 0)
        memcpy(text, out, (size_t)len < room ? (size_t)len : room);
    guard_done(&code_guard);
    guard_done(&text_guard);
    return len;
}

static long decode_bytes(const char *bytes, size_t len)
{
    char text[ROOM];
    return decode(span_of(bytes, len), text, sizeof(text));
}

static void rfc_7541_section_5_2_each_text_has_one_code(void **state)
{
    (void)state;
    static const struct {
        const char *text, *code;
    } rows[] = {
        { "www.example.com", "\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff" },
        { "no-cache", "\xa8\xeb\x10\x64\x9c\xbf" },
        { "302", "\x64\x02" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char code[64], text[64];
        struct span plain = span_text(rows[i].text);
        assert_int_equal(http2_huffman_len(plain), strlen(rows[i].code));
        http2_huffman_encode(plain, code);
        assert_memory_equal(code, rows[i].code, strlen(rows[i].code));
        assert_int_equal(decode(span_text(rows[i].code), text, sizeof(text)), plain.len);
        assert_memory_equal(text, plain.at, plain.len);
    }
}

/* Each symbol, alone and between others, at each position in a byte. */
static void decodes_each_symbol_at_each_bit(void **state)
{
    (void)state;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        for (unsigned before = 0; before < 16; before++) {
            char plain[40], code[200], text[ROOM];
            memset(plain, 'a', sizeof(plain)); /* 5 bits each */
            plain[before] = (char)symbol;
            for (size_t len = before + 1; len < before + 12; len++) {
                struct span all = span_of(plain, len);
                http2_huffman_encode(all, code);
                size_t code_len = http2_huffman_len(all);
                assert_int_equal(decode(span_of(code, code_len), text, sizeof(text)), len);
                assert_memory_equal(text, plain, len);
            }
        }
    }
}

static void rfc_7541_section_5_2_refuses_a_padding_of_more_than_7_bits(void **state)
{
    (void)state;
    static const char ones[8] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    for (size_t len = 1; len <= sizeof(ones); len++)
        assert_int_equal(decode_bytes(ones, len), -1);
    /* `&` has 8 bits, and `0` 5. */
    assert_int_equal(decode_bytes("\xf8", 1), 1);
    assert_int_equal(decode_bytes("\xf8\xff", 2), -1);
    assert_int_equal(decode_bytes("\x07", 1), 1);
    assert_int_equal(decode_bytes("\x07\xff", 2), -1);
    assert_int_equal(decode_bytes("\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xff", 9), -1);
}

static void rfc_7541_section_5_2_refuses_a_padding_that_is_not_the_beginning_of_eos(void **state)
{
    (void)state;
    unsigned right = 0;
    /* `0` has the code 00000: three bits of padding. */
    for (char byte = 0; byte < 8; byte++)
        right += decode_bytes(&byte, 1) == 1;
    assert_int_equal(right, 1);
    /* In a long code, behind whole loads. */
    for (unsigned len = 1; len < 40; len++) {
        char plain[40], code[64];
        memset(plain, 'a', sizeof(plain));
        http2_huffman_encode(span_of(plain, len), code);
        size_t code_len = http2_huffman_len(span_of(plain, len));
        assert_int_equal(decode_bytes(code, code_len), len);
        if (len * 5 % 8 == 0)
            continue;
        code[code_len - 1] ^= 1;
        assert_int_equal(decode_bytes(code, code_len), -1);
    }
}

static void rfc_7541_section_5_2_refuses_eos(void **state)
{
    (void)state;
    for (unsigned before = 0; before < 24; before++) {
        char plain[24], code[64];
        memset(plain, '0', sizeof(plain));
        memset(code, 0, sizeof(code));
        size_t bits = 5 * before;
        for (size_t i = bits; i < bits + EOS_BITS; i++)
            code[i / 8] = (char)((unsigned char)code[i / 8] | 0x80u >> i % 8);
        for (size_t i = bits + EOS_BITS; i % 8 != 0; i++)
            code[i / 8] = (char)((unsigned char)code[i / 8] | 0x80u >> i % 8);
        assert_int_equal(decode_bytes(code, (bits + EOS_BITS + 7) / 8), -1);
        assert_int_equal(decode_bytes(code, (bits + EOS_BITS + 7) / 8 + 5), -1);
    }
}

static void refuses_a_long_code_that_is_cut_off(void **state)
{
    (void)state;
    for (unsigned symbol = 0; symbol < 256; symbol++) {
        char plain[3] = { 'a', (char)symbol, 'a' }, code[16];
        http2_huffman_encode(span_of(plain, 2), code);
        size_t len = http2_huffman_len(span_of(plain, 2));
        if (len > 3)
            assert_int_equal(decode_bytes(code, len - 1), -1);
    }
}

static void counts_text_behind_the_space_and_does_not_write_it(void **state)
{
    (void)state;
    char plain[300], code[1200], text[ROOM];
    for (unsigned i = 0; i < sizeof(plain); i++)
        plain[i] = (char)(i % 7 == 0 ? i : 'a' + i % 26);
    for (size_t len = 0; len <= sizeof(plain); len += 1 + len / 8) {
        http2_huffman_encode(span_of(plain, len), code);
        size_t code_len = http2_huffman_len(span_of(plain, len));
        for (size_t room = 0; room <= len + 8; room++) {
            assert_int_equal(decode(span_of(code, code_len), text, room), len);
            assert_memory_equal(text, plain, room < len ? room : len);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_7541_section_5_2_each_text_has_one_code),
        cmocka_unit_test(decodes_each_symbol_at_each_bit),
        cmocka_unit_test(rfc_7541_section_5_2_refuses_a_padding_of_more_than_7_bits),
        cmocka_unit_test(rfc_7541_section_5_2_refuses_a_padding_that_is_not_the_beginning_of_eos),
        cmocka_unit_test(rfc_7541_section_5_2_refuses_eos),
        cmocka_unit_test(refuses_a_long_code_that_is_cut_off),
        cmocka_unit_test(counts_text_behind_the_space_and_does_not_write_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
