/* SPDX-License-Identifier: MIT
 *
 * The decoder looks at the next 12 bits at once. They hold two symbols of most text whole, because
 * the codes of common symbols have 5 to 7 bits. Longer codes take the slow path.
 *
 * Behind the end of the code the decoder reads bits that are 1, as the padding is. A symbol that
 * uses such a bit ends behind the end of the code. So one check after the last symbol is enough.
 */
#include "http2/huffman.h"

#include <endian.h>
#include <stdint.h>

/* The symbols that the next bits hold whole. */
struct window {
    uint8_t symbol[2];
    uint8_t bits;    /* of these symbols */
    uint8_t symbols; /* 0, 1 or 2 */
};

#include <http2_huffman.inc> /* made by tools/hpack_tables.py */

#define LENGTHS(first, ...) __VA_ARGS__,
static const uint8_t symbol_bits[256] = {
#include "http2/huffman.def"
};
#undef LENGTHS

enum {
    PADDING_BITS_MAX = 7,
    WINDOWS_IN_LOAD = 4, /* 48 bits; a load gives 57 at least */
};

static inline uint64_t load_8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return be64toh(word);
}

static inline uint64_t load_4(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return be32toh(word);
}

/* 1 to 7 bytes at the top of a word, and ones behind them. */
static inline uint64_t load_few(const char *at, size_t len)
{
    uint64_t word = 0;

    if (len >= 4) {
        word = load_4(at) << 32 | load_4(at + len - 4) << (64 - 8 * len);
    } else {
        for (size_t i = 0; i < len; i++)
            word |= (uint64_t)(unsigned char)at[i] << (56 - 8 * i);
    }
    return word | UINT64_MAX >> 8 * len;
}

/* The bits of `code` from `bit` on, at the top of the word. At least one is left. */
static inline uint64_t load_bits(struct span code, size_t bit)
{
    size_t left = code.len - bit / 8;
    unsigned skip = bit % 8;
    uint64_t word;

    if (left >= 8)
        return load_8(code.at + bit / 8) << skip;
    if (code.len >= 8) /* the last 8 bytes, of which some are decoded */
        word = load_8(code.at + code.len - 8) << (64 - 8 * left) | UINT64_MAX >> 8 * left;
    else
        word = load_few(code.at + bit / 8, left);
    return word << skip | ((UINT64_C(1) << skip) - 1);
}

/* One symbol with a long code; none when the code is wrong. EOS is not among the long codes, so it
 * is wrong too. */
static __attribute__((noinline)) struct window find_long(uint64_t word)
{
    for (size_t i = 0; i < sizeof(long_codes) / sizeof(long_codes[0]); i++) {
        uint64_t place = (word >> (64 - long_codes[i].bits)) - long_codes[i].first;
        if (place < long_codes[i].count)
            return (struct window){ .symbol = { long_symbols[long_codes[i].at + place] },
                                    .bits = long_codes[i].bits,
                                    .symbols = 1 };
    }
    return (struct window){ .symbols = 0 };
}

/* Puts the symbols of a window behind `len` bytes of text. `roomy`: there is space behind them. */
static inline void put_window(char *out, size_t room, size_t len, struct window window, bool roomy)
{
    if (roomy || len + 1 < room)
        memcpy(out + len, window.symbol, 2);
    else if (len < room)
        out[len] = (char)window.symbol[0];
}

static inline __attribute__((always_inline)) long decode(struct span code, char *out, size_t room,
                                                         bool roomy)
{
    size_t total = 8 * code.len, bits = 0, len = 0;

    while (bits < total) {
        uint64_t word = load_bits(code, bits);
        struct window window;
        /* Behind the end there are ones, and a window of ones has no symbol. So no step checks the
         * end. */
#pragma GCC unroll WINDOWS_IN_LOAD
        for (unsigned i = 0; i < WINDOWS_IN_LOAD; i++) {
            window = windows[word >> (64 - WINDOW_BITS)];
            put_window(out, room, len, window, roomy);
            len += window.symbols;
            bits += window.bits;
            word <<= window.bits;
        }
        if (__builtin_expect(window.symbols == 0 && bits < total, 0)) {
            /* A window without a symbol begins with eight ones at least. */
            if (total - bits <= PADDING_BITS_MAX)
                return (long)len;
            window = find_long(load_bits(code, bits));
            if (window.symbols == 0)
                return -1;
            put_window(out, room, len, window, roomy);
            len += window.symbols;
            bits += window.bits;
        }
    }
    return bits == total ? (long)len : -1;
}

long http2_huffman_decode(struct span code, char *out, size_t room)
{
    enum { SHORTEST_BITS = 5 };

    if (room >= 8 * code.len / SHORTEST_BITS + sizeof(struct window))
        return decode(code, out, room, true);
    return decode(code, out, room, false);
}

size_t http2_huffman_len(struct span text)
{
    size_t bits = 0;

    for (size_t i = 0; i < text.len; i++)
        bits += symbol_bits[(unsigned char)text.at[i]];
    return (bits + 7) / 8;
}

void http2_huffman_encode(struct span text, char *out)
{
    uint64_t word = 0;
    unsigned bits = 0; /* at the low end of the word, not written yet; below 8 between symbols */

    for (size_t i = 0; i < text.len; i++) {
        unsigned char symbol = (unsigned char)text.at[i];
        word = word << symbol_bits[symbol] | symbol_code[symbol];
        for (bits += symbol_bits[symbol]; bits >= 8; bits -= 8)
            *out++ = (char)(word >> (bits - 8));
    }
    if (bits > 0)
        *out = (char)(word << (8 - bits) | 0xffu >> bits);
}
