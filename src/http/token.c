/* SPDX-License-Identifier: MIT
 *
 * The table of token bytes, written as ranges so that a reader can compare it with RFC 9110
 * section 5.6.2.
 */
#include "http/token.h"

const unsigned char http_token_bytes[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

bool http_token_valid(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!http_token_byte(text.at[i]))
            return false;
    return text.len > 0;
}
