/* SPDX-License-Identifier: MIT */
#include "http2/hpack.h"

#include "base/scan.h"
#include "http/token.h"
#include "http2/huffman.h"

/* The first byte of a field (RFC 7541 section 6): a mark, then the prefix of an integer. */
enum {
    INDEXED = 0x80,
    INDEXED_BITS = 7,
    INSERTED = 0x40,
    INSERTED_BITS = 6,
    RESIZED = 0x20,
    RESIZED_MASK = 0xe0,
    RESIZED_BITS = 5,
    LITERAL = 0x00, /* 0x10 as well: never indexed */
    LITERAL_BITS = 4,
    HUFFMAN = 0x80,
    STRING_BITS = 7,
};

/* The largest integer that is read. Every meaningful one is far below. */
enum { INTEGER_MAX = 1 << 28 };

/* Reads the bytes of an integer behind a prefix that is full. False: it is cut off or too large. */
static bool read_long_integer(struct http2_hpack_reader *reader, uint32_t *value)
{
    for (unsigned shift = 0; reader->at < reader->end && shift <= 28; shift += 7) {
        unsigned char byte = *reader->at++;
        uint64_t sum = *value + ((uint64_t)(byte & 0x7f) << shift);
        if (sum > INTEGER_MAX)
            return false;
        *value = (uint32_t)sum;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads an integer whose first byte exists (RFC 7541 section 5.1). */
static inline bool read_integer(struct http2_hpack_reader *reader, unsigned prefix_bits,
                                uint32_t *ret_value)
{
    unsigned mask = (1u << prefix_bits) - 1;

    *ret_value = *reader->at++ & mask;
    return *ret_value < mask || read_long_integer(reader, ret_value);
}

/* Reads a string literal (RFC 7541 section 5.2). A decoded text has `len` bytes, of which
 * HTTP2_HPACK_TEXT_MAX are in `storage`. */
static inline bool read_string(struct http2_hpack_reader *reader, char *storage,
                               struct span *ret_text)
{
    uint32_t len;

    if (reader->at == reader->end)
        return false;
    bool huffman = *reader->at & HUFFMAN;
    if (!read_integer(reader, STRING_BITS, &len) || len > (size_t)(reader->end - reader->at))
        return false;
    struct span bytes = span_of((const char *)reader->at, len);
    reader->at += len;
    if (!huffman) {
        *ret_text = bytes;
        return true;
    }
    long text_len = http2_huffman_decode(bytes, storage, HTTP2_HPACK_TEXT_MAX);
    *ret_text = span_of(storage, (size_t)text_len);
    return text_len >= 0;
}

/* A name has token bytes in lower case (RFC 9113 section 8.2.1). The colon of a pseudo-header field
 * is no such byte. Known names are not checked. */
static bool is_valid_name(struct span name)
{
    for (size_t i = 0; i < name.len && i < HTTP2_HPACK_TEXT_MAX; i++)
        if (!http_token_byte(name.at[i]) || (name.at[i] >= 'A' && name.at[i] <= 'Z'))
            return false;
    return name.len > 0;
}

/* A value has no control byte except HTAB, and no white space at its ends (RFC 9113 section 8.2.1).
 */
static inline bool is_valid_value(struct span value)
{
    size_t len = value.len < HTTP2_HPACK_TEXT_MAX ? value.len : HTTP2_HPACK_TEXT_MAX;

    if (len == 0)
        return true;
    char first = value.at[0], last = value.at[len - 1];
    return first != ' ' && first != '\t' && last != ' ' && last != '\t' &&
           scan_field_value_end(value.at, len) == len;
}

/* The field of an index into both tables (RFC 7541 section 2.3.3). */
static inline bool get_indexed(const struct http2_hpack_reader *reader, uint32_t index,
                               struct http2_field *ret_field)
{
    if (index > HTTP2_TABLE_STATIC_COUNT)
        return http2_table_get(reader->table, index - HTTP2_TABLE_STATIC_COUNT - 1, ret_field);
    *ret_field = http2_table_static[index];
    return index > 0;
}

/* Reads a literal field: the index of its name, or 0 and the name, then the value. */
static inline bool read_literal(struct http2_hpack_reader *reader, unsigned prefix_bits,
                                struct http2_field *field)
{
    uint32_t index;

    if (!read_integer(reader, prefix_bits, &index))
        return false;
    if (index == 0) {
        if (!read_string(reader, reader->name_storage, &field->name))
            return false;
        field->id = (uint8_t)http2_table_name(field->name);
        field->name_valid = field->id != HTTP2_NAME_OTHER || is_valid_name(field->name);
    } else if (!get_indexed(reader, index, field)) {
        return false;
    } else if (field->id == HTTP2_NAME_OTHER && field->name.at) {
        /* The text of the table moves when the field is added. */
        memcpy(reader->name_storage, field->name.at, field->name.len);
        field->name.at = reader->name_storage;
    }
    if (!read_string(reader, reader->value_storage, &field->value))
        return false;
    field->valid = field->name_valid && is_valid_value(field->value);
    return true;
}

bool http2_hpack_update(struct http2_hpack_reader *reader)
{
    reader->changes = true;
    while (reader->at < reader->end && (*reader->at & RESIZED_MASK) == RESIZED) {
        uint32_t size_max;
        if (!read_integer(reader, RESIZED_BITS, &size_max) ||
            !http2_table_resize(reader->table, size_max))
            return false;
    }
    return true;
}

enum http2_hpack http2_hpack_next_other(struct http2_hpack_reader *reader,
                                        struct http2_field *ret_field)
{
    const unsigned char *start = reader->at;
    uint32_t index;

    if (*start & INDEXED) {
        if (!read_integer(reader, INDEXED_BITS, &index) || !get_indexed(reader, index, ret_field))
            return HTTP2_HPACK_BROKEN;
        return HTTP2_HPACK_FIELD;
    }
    if (*start & INSERTED) {
        reader->changes = true;
        if (!read_literal(reader, INSERTED_BITS, ret_field))
            return HTTP2_HPACK_BROKEN;
        reader->needed = http2_table_add(reader->table, ret_field);
        if (reader->needed == 0)
            return HTTP2_HPACK_FIELD;
        reader->at = start;
        return HTTP2_HPACK_GROW;
    }
    if (*start & RESIZED || !read_literal(reader, LITERAL_BITS, ret_field))
        return HTTP2_HPACK_BROKEN;
    return HTTP2_HPACK_FIELD;
}

void http2_hpack_add_integer(struct buf *block, unsigned mark, unsigned prefix_bits, size_t value)
{
    size_t mask = (1u << prefix_bits) - 1;

    if (value < mask) {
        buf_add_char(block, (char)(mark | value));
        return;
    }
    buf_add_char(block, (char)(mark | mask));
    for (value -= mask; value >= 0x80; value >>= 7)
        buf_add_char(block, (char)(0x80 | (value & 0x7f)));
    buf_add_char(block, (char)value);
}

void http2_hpack_add_string(struct buf *block, struct span text)
{
    size_t len = http2_huffman_len(text);

    if (len >= text.len) {
        http2_hpack_add_integer(block, 0, STRING_BITS, text.len);
        buf_add(block, text);
        return;
    }
    http2_hpack_add_integer(block, HUFFMAN, STRING_BITS, len);
    if (block->overflow || len > buf_room(block)) {
        block->overflow = true;
        return;
    }
    http2_huffman_encode(text, block->at + block->len);
    block->len += len;
}

void http2_hpack_add_field(struct buf *block, struct span name, struct span value)
{
    char lower[HTTP_FIELD_NAME_MAX];

    if (name.len > sizeof(lower)) {
        block->overflow = true;
        return;
    }
    for (size_t i = 0; i < name.len; i++)
        lower[i] = ascii_lower(name.at[i]);
    name = span_of(lower, name.len);
    unsigned index = http2_table_name_index(http2_table_name(name));
    http2_hpack_add_integer(block, LITERAL, LITERAL_BITS, index);
    if (index == 0)
        http2_hpack_add_string(block, name);
    http2_hpack_add_string(block, value);
}

void http2_hpack_add_no_table(struct buf *block)
{
    http2_hpack_add_integer(block, RESIZED, RESIZED_BITS, 0);
}
