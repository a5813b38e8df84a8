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
#include <http2_huffman.inc> /* made by tools/hpack_tables.py */
#include <stdint.h>

#define LENGTHS(first, ...) __VA_ARGS__,
static const uint8_t symbol_bits[256] = {
#include "http2/huffman.def"
};
#undef LENGTHS

enum {
    PADDING_BITS_MAX = 7,
    WINDOWS_IN_LOAD = 4, /* 48 bits; a load gives 57 at least */
};

struct decoder {
    const char *at;
    char *out;
    size_t room;
    size_t bits, bits_total; /* decoded; of the code */
    size_t len;              /* of the text so far */
};

/* The bits from `bits` on, at the top of the word. At least one bit of the code is left. */
static inline uint64_t load_bits(const struct decoder *d)
{
    size_t byte = d->bits / 8, left = d->bits_total / 8 - byte;
    unsigned skip = d->bits % 8;
    uint64_t word = 0;

    if (left >= sizeof(word)) {
        memcpy(&word, d->at + byte, sizeof(word));
        return be64toh(word) << skip;
    }
    for (size_t i = 0; i < left; i++)
        word = word << 8 | (unsigned char)d->at[byte + i];
    word = word << (64 - 8 * left) | UINT64_MAX >> 8 * left;
    return word << skip | ((UINT64_C(1) << skip) - 1);
}

static inline void put_symbol(struct decoder *d, unsigned symbol)
{
    if (d->len < d->room)
        d->out[d->len] = (char)symbol;
    d->len++;
}

/* Decodes one symbol with a long code, or ends at the padding. False: the code is wrong. EOS has no
 * place among the long codes, so it is wrong too. */
static bool decode_long(struct decoder *d)
{
    uint64_t word = load_bits(d);

    /* No window without a symbol begins with fewer than eight ones. */
    if (d->bits_total - d->bits <= PADDING_BITS_MAX) {
        d->bits = d->bits_total;
        return true;
    }
    for (size_t i = 0; i < sizeof(long_codes) / sizeof(long_codes[0]); i++) {
        uint64_t code = word >> (64 - long_codes[i].bits);
        if (code - long_codes[i].first < long_codes[i].count) {
            put_symbol(d, long_symbols[long_codes[i].at + (code - long_codes[i].first)]);
            d->bits += long_codes[i].bits;
            return true;
        }
    }
    return false;
}

/* Puts the one or two symbols of a window. `roomy`: the text fits, with one byte to spare. */
static inline void put_window(struct decoder *d, unsigned window, bool roomy)
{
    unsigned symbols = window >> 24;

    if (roomy) {
        d->out[d->len] = (char)window;
        d->out[d->len + 1] = (char)(window >> 8);
        d->len += symbols;
        return;
    }
    put_symbol(d, window & 0xff);
    if (symbols == 2)
        put_symbol(d, window >> 8 & 0xff);
}

static inline __attribute__((always_inline)) bool decode_all(struct decoder *d, bool roomy)
{
    while (d->bits < d->bits_total) {
        uint64_t word = load_bits(d);
        unsigned window = windows[word >> (64 - WINDOW_BITS)];
        if (__builtin_expect(window == 0, 0) && !decode_long(d))
            return false;
        for (unsigned i = 0; window != 0 && d->bits < d->bits_total; i++) {
            put_window(d, window, roomy);
            unsigned bits = window >> 16 & 0xff;
            d->bits += bits;
            word <<= bits;
            window = i + 1 < WINDOWS_IN_LOAD ? windows[word >> (64 - WINDOW_BITS)] : 0;
        }
    }
    return d->bits == d->bits_total;
}

long http2_huffman_decode(struct span code, char *out, size_t room)
{
    enum { SHORTEST_BITS = 5 };
    struct decoder d = { .at = code.at, .out = out, .room = room, .bits_total = 8 * code.len };
    bool right = room > d.bits_total / SHORTEST_BITS + 1 ? decode_all(&d, true)
                                                         : decode_all(&d, false);

    return right ? (long)d.len : -1;
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
