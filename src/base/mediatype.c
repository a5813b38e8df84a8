/* SPDX-License-Identifier: MIT */
#include "base/mediatype.h"

/* A type is copied into heads of answers, so each byte counts. */
bool mediatype_valid(struct span text)
{
    static const char others[] = "!#$%&'*+-.^_`|~"; /* RFC 9110 section 5.6.2 */
    size_t slashes = 0;

    for (size_t i = 0; i < text.len; i++) {
        const char c = ascii_lower(text.at[i]);
        if (c == '/' && i > 0 && i + 1 < text.len)
            slashes++;
        else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                   memchr(others, c, sizeof(others) - 1)))
            return false;
    }
    return slashes == 1 && text.len <= MEDIATYPE_MAX;
}
