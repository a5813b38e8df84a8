/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const uint8_t *bytes, size_t len, char *out)
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

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Returns false for a length that no encoding has. */
static bool remove_padding(struct span *text)
{
    size_t padding = 0;
    while (padding < 2 && padding < text->len && text->at[text->len - 1 - padding] == '=')
        padding++;
    if (padding > 0 && text->len % 4 != 0)
        return false;
    text->len -= padding;
    return text->len % 4 != 1; /* six bits are no byte */
}

bool base64_decode(struct span text, uint8_t *out, size_t size, size_t *ret_len)
{
    size_t len = 0;
    uint32_t bits = 0;
    if (!remove_padding(&text))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.at[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 0)
            continue;
        if (len == size)
            return false;
        out[len++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *ret_len = len;
    return true;
}
