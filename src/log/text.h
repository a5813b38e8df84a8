/* SPDX-License-Identifier: MIT
 *
 * The texts of a log line, before they are written. All texts of a line are measured first. A line
 * that fits is then written without further checks. In a longer line the longest texts are cut and
 * marked with "...". Clean text, which is nearly all, is copied. Other text goes through
 * base/escape.h.
 *
 * Inline, because each line has several texts. Private to log/.
 */
#pragma once

#include "base/escape.h"
#include "base/scan.h"

#include <limits.h>
#include <stdint.h>

/* One text of a line. */
struct log_text {
    struct span raw;
    enum escape how;
    bool plain; /* needs no escaping */
    bool cut;
    size_t len; /* bytes in the line; the limit when it is cut */
};

/* The most texts of a line. */
enum { LOG_TEXTS_MAX = 48 };

/* Sets `plain` and `len` of a text whose `raw` and `how` are set. */
static inline void log_text_measure(struct log_text *text)
{
    text->plain = scan_log_unsafe(text->raw.at, text->raw.len) == text->raw.len;
    if (text->how == ESCAPE_WORD && text->raw.len > 0)
        text->plain = text->plain && scan_target_end(text->raw.at, text->raw.len) == text->raw.len;
    text->len = text->plain ? text->raw.len : escape_text(NULL, SIZE_MAX, text->raw, text->how);
}

/* Cuts the longest of `count` texts to one length, so that all take at most `room` bytes. They take
 * more before. `room` is at least three bytes for each text. */
static inline void log_text_cut_longest(struct log_text *texts, unsigned count, size_t room)
{
    bool fits[LOG_TEXTS_MAX] = { false };
    unsigned long_count = count;
    for (unsigned i = 0; i < count; i++) {
        if (fits[i] || texts[i].len > room / long_count)
            continue;
        fits[i] = true;
        room -= texts[i].len;
        long_count--;
        i = UINT_MAX; /* the others may now take more: check all again */
    }
    for (unsigned i = 0; i < count; i++) {
        if (fits[i])
            continue;
        texts[i].len = room / long_count;
        texts[i].cut = true;
    }
}

/* Each of these writes to `out` and returns the end of what it wrote. */

static inline char *log_text_copy(char *out, struct span bytes)
{
    memcpy(out, bytes.at, bytes.len);
    return out + bytes.len;
}

static inline char *log_text_put(char *out, const struct log_text *text)
{
    static const struct span ellipsis = { "...", 3 };
    if (text->cut) {
        out += escape_text(out, text->len - ellipsis.len, text->raw, text->how);
        return log_text_copy(out, ellipsis);
    }
    if (!text->plain)
        return out + escape_text(out, text->len, text->raw, text->how);
    return text->raw.len > 0 ? log_text_copy(out, text->raw) : out;
}
