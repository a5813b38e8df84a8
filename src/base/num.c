/* SPDX-License-Identifier: MIT
 *
 * Numbers from text and to text. Overflow is detected before it happens. Only
 * what num.h allows is accepted.
 */
#include "base/num.h"

bool num_parse_u64(struct span text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool num_parse_hex(struct span text, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = num_hex_digit(text.at[i]);
        if (digit < 0 || value >> 60 != 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    *ret_value = value;
    return true;
}

/* From the number of bits: 1233 / 4096 is nearly log10(2), so the guess is right or one too low. */
static size_t digits_of(uint64_t value)
{
    static const uint64_t power[] = {
        UINT64_C(10),
        UINT64_C(100),
        UINT64_C(1000),
        UINT64_C(10000),
        UINT64_C(100000),
        UINT64_C(1000000),
        UINT64_C(10000000),
        UINT64_C(100000000),
        UINT64_C(1000000000),
        UINT64_C(10000000000),
        UINT64_C(100000000000),
        UINT64_C(1000000000000),
        UINT64_C(10000000000000),
        UINT64_C(100000000000000),
        UINT64_C(1000000000000000),
        UINT64_C(10000000000000000),
        UINT64_C(100000000000000000),
        UINT64_C(1000000000000000000),
        UINT64_C(10000000000000000000),
    };
    const unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    const unsigned guess = bits * 1233 >> 12;
    return guess + (guess == 0 || value >= power[guess - 1]);
}

size_t num_format_u64(char *out, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    const size_t len = digits_of(value);
    char *at = out + len;

    for (; value >= 10; value /= 100) {
        at -= 2;
        memcpy(at, pairs + value % 100 * 2, 2);
    }
    if (at > out)
        *out = (char)('0' + value);
    return len;
}

/* The digits of four bytes, the first one in the highest byte; all eight at once. */
static uint64_t hex_of(uint32_t value)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t x = value;

    x = (x << 16 | x) & UINT64_C(0x0000ffff0000ffff);
    x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    const uint64_t letters = (x + 6 * each) >> 4 & each;
    return x + '0' * each + letters * ('a' - '0' - 10);
}

void num_format_hex(char *out, uint64_t value)
{
    uint64_t digits[2] = { hex_of((uint32_t)(value >> 32)), hex_of((uint32_t)value) };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    digits[0] = __builtin_bswap64(digits[0]);
    digits[1] = __builtin_bswap64(digits[1]);
#endif
    memcpy(out, digits, NUM_HEX_DIGITS);
}

int num_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
