/* SPDX-License-Identifier: MIT
 *
 * One unit at a time: a byte or a character is copied or becomes its escape. Counting and writing
 * are one loop, so the two cannot disagree. A caller that wants the fast path for clean text
 * tests it with scan_log_unsafe first.
 */
#include "base/escape.h"

#include "base/utf8.h"

static const char hex_digits[] = "0123456789abcdef";

enum { UNIT_MAX = 6 }; /* \uHHHH; a character is at most 4 */

static bool is_hostile(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || /* C0, DEL and C1 */
           (code >= 0x2028 && code <= 0x202e) ||           /* separators, embeddings, overrides */
           (code >= 0x2066 && code <= 0x2069);             /* isolates */
}

static size_t put_byte_escape(char *out, unsigned char byte)
{
    out[0] = '\\';
    out[1] = 'x';
    out[2] = hex_digits[byte >> 4];
    out[3] = hex_digits[byte & 15];
    return 4;
}

static size_t put_json_escape(char *out, uint32_t code)
{
    out[0] = '\\';
    out[1] = 'u';
    for (unsigned i = 0; i < 4; i++)
        out[2 + i] = hex_digits[code >> (12 - 4 * i) & 15];
    return 6;
}

/* Writes the first unit of `text` to `out`. Returns how many bytes that took, and in *ret_taken how
 * many bytes of the text. */
static size_t put_unit(char out[UNIT_MAX], struct span text, enum escape how, size_t *ret_taken)
{
    const unsigned char first = (unsigned char)text.at[0];
    uint32_t code = first;
    size_t len = utf8_decode(text, &code);
    const bool ascii_only = how == ESCAPE_BYTES || how == ESCAPE_WORD;
    const bool special = (how != ESCAPE_TEXT && (first == '"' || first == '\\')) ||
                         (how == ESCAPE_WORD && first == ' ') || (ascii_only && len > 1);
    if (len > 0 && !special && !is_hostile(code)) {
        memcpy(out, text.at, len);
        *ret_taken = len;
        return len;
    }
    if (how == ESCAPE_JSON) {
        *ret_taken = len > 0 ? len : 1;
        return put_json_escape(out, len > 0 ? code : first);
    }
    *ret_taken = 1;
    return put_byte_escape(out, first);
}

size_t escape_text(char *out, size_t room, struct span text, enum escape how)
{
    size_t used = 0;
    while (text.len > 0) {
        char unit[UNIT_MAX];
        size_t taken;
        const size_t len = put_unit(unit, text, how, &taken);
        if (len > room - used)
            break;
        if (out != NULL)
            memcpy(out + used, unit, len);
        used += len;
        text = span_skip(text, taken);
    }
    return used;
}
