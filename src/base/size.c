/* SPDX-License-Identifier: MIT */
#include "base/size.h"

#include "base/buf.h"

struct size_text size_format(uint64_t bytes)
{
    static const char prefixes[] = "KMGTPE";
    struct size_text out;
    struct buf buf = buf_over(out.text, sizeof(out.text) - 1);
    if (bytes < 1024) {
        buf_add_u64(&buf, bytes);
        buf_add(&buf, SPAN(" B"));
    } else {
        unsigned unit = 0; /* `bytes` counts 1024ths of it; what is dropped is below 0.1 % */
        for (; bytes >= UINT64_C(1024) * 1024 - 512; unit++)
            bytes >>= 10;
        buf_add_figures(&buf, bytes, 1024);
        buf_add_char(&buf, ' ');
        buf_add_char(&buf, prefixes[unit]);
        buf_add(&buf, SPAN("iB"));
    }
    out.text[buf.len] = '\0';
    return out;
}
