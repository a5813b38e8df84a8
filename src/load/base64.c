/* SPDX-License-Identifier: MIT */
#include "load/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void load_base64_encode(const uint8_t *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= have > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= have > 2 ? (uint32_t)bytes[i + 2] : 0;
        *out++ = letters[group >> 18];
        *out++ = letters[group >> 12 & 63];
        *out++ = have > 1 ? letters[group >> 6 & 63] : '=';
        *out++ = have > 2 ? letters[group & 63] : '=';
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* How many characters of the text are padding, which only its end may be. */
static size_t padding_of(struct span text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.at[text.len - 1 - padding] == '=')
        padding++;
    return padding;
}

bool load_base64_decode(struct span text, uint8_t *out, size_t *ret_len)
{
    if (text.len % 4 != 0)
        return false;
    size_t digits = text.len - padding_of(text), len = 0;
    uint32_t group = 0;
    for (size_t i = 0; i < digits; i++) {
        int value = value_of(text.at[i]);
        if (value < 0)
            return false;
        group = group << 6 | (uint32_t)value;
        unsigned spare = (unsigned)(i % 4) * 2; /* bits that the next byte begins with */
        if (i % 4 > 0)
            out[len++] = (uint8_t)(group >> (6 - spare));
    }
    *ret_len = len;
    return true;
}
