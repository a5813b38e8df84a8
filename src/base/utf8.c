/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

size_t utf8_decode(struct span text, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* by length */
    const unsigned char *at = (const unsigned char *)text.at;
    if (text.len == 0)
        return 0;
    const unsigned char first = at[0];
    const size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || len > text.len)
        return 0;
    uint32_t code = len == 1 ? first : first & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return len;
}
