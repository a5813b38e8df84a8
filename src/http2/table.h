/* SPDX-License-Identifier: MIT
 *
 * The dynamic table of an HPACK decoder (RFC 7541 sections 2.3 and 4), in memory of the caller.
 *
 * A connection keeps its table while it is idle, so the table is small. A known name is one byte.
 * A value is stored only if a reader of the table uses fields of that name (`keeps`). Of any other
 * field only the lengths are stored, and whether it was valid: eviction needs no more.
 *
 * It allocates nothing. http2/hpack.h reports HTTP2_HPACK_GROW when the memory is too small.
 */
#pragma once

#include "base/span.h"
#include "http2/limits.h"

#include <stdint.h>

enum http2_name {
    HTTP2_NAME_OTHER, /* a name that names.def does not list */
#define NAME(name, text, index) HTTP2_NAME_##name,
#include "http2/names.def"
#undef NAME
    HTTP2_NAME_COUNT
};

/* One of the first 64 names, in a set of names. */
#define HTTP2_NAME_BIT(name) (UINT64_C(1) << (HTTP2_NAME_##name))

/* A field of a header block or of a table. */
struct http2_field {
    struct span name;  /* `at` is NULL when the table does not store the bytes */
    struct span value; /* the same; the length is always right */
    uint8_t id;        /* enum http2_name */
    bool name_valid;   /* the name has no byte that RFC 9113 section 8.2.1 forbids */
    bool valid;        /* name and value are valid */
};

/* An entry of the dynamic table. Private to http2/table. */
struct http2_table_entry {
    uint16_t text_end; /* the position after its text; wraps around */
    uint16_t name_len, value_len;
    uint8_t id;
    uint8_t marks; /* HTTP2_ENTRY_... */
};

enum {
    HTTP2_ENTRY_NAME_VALID = 1,
    HTTP2_ENTRY_VALID = 2,
    HTTP2_ENTRY_NAME_STORED = 4,
    HTTP2_ENTRY_VALUE_STORED = 8
};

/* Set it with http2_table_init. All members except `memory` and `memory_size` are private. */
struct http2_table {
    char *memory;         /* of the caller: entries, free space, then their text */
    const bool *keeps;    /* by enum http2_name: its values are stored; NULL: all are */
    uint16_t memory_size; /* bytes */
    uint16_t size;        /* as RFC 7541 section 4.1 counts it */
    uint16_t size_max;    /* the maximum that the encoder chose */
    uint16_t first;       /* the place of the oldest entry */
    uint16_t count;       /* entries */
    uint16_t text_base; /* the position of the last byte of the memory; positions grow downwards */
    uint16_t text_end;  /* the position after the newest entry's text */
};

/* Bytes of memory that are enough for every table. */
enum { HTTP2_TABLE_MEMORY_MAX = HTTP2_TABLE_MAX + 512 };

/* An empty table without memory. Borrows `keeps`, HTTP2_NAME_COUNT members: whether the values of a
 * name are stored. HTTP2_NAME_OTHER is for the names that names.def does not list. NULL: all values
 * are stored. */
void http2_table_init(struct http2_table *table, const bool *keeps);

/* Bytes of memory that the contents need. */
size_t http2_table_used(const struct http2_table *table);

/* Copies the contents to `memory` of `size` bytes, http2_table_used to HTTP2_TABLE_MEMORY_MAX, and
 * borrows it from now on. It is aligned as malloc aligns. The caller frees the earlier memory. An
 * empty table may have no memory: `size` is 0. */
void http2_table_move(struct http2_table *table, char *memory, size_t size);

/* Adds a field as the newest, after evicting as many of the oldest as necessary. Its spans do not
 * point into the table. Returns 0, or the bytes of memory that the table needs first. Then nothing
 * has changed. */
size_t http2_table_add(struct http2_table *table, const struct http2_field *field);

/* A size update of the encoder (RFC 7541 section 6.3). False: above HTTP2_TABLE_MAX. No setting of
 * ours lowers that limit, so no block must begin with an update (RFC 9113 section 4.3.1). */
bool http2_table_resize(struct http2_table *table, uint64_t size_max);

/* The name that names.def lists with this text, or HTTP2_NAME_OTHER. */
enum http2_name http2_table_name(struct span text);

/* The first index of a name in the static table, or 0. */
unsigned http2_table_name_index(enum http2_name name);

/* The fields of the static table (RFC 7541 appendix A). [0] is not used. */
enum { HTTP2_TABLE_STATIC_COUNT = 61 };
extern const struct http2_field http2_table_static[HTTP2_TABLE_STATIC_COUNT + 1];

/* The texts of the names; [HTTP2_NAME_OTHER] is empty. */
extern const struct span http2_table_names[HTTP2_NAME_COUNT];

/* The field `index` steps older than the newest; false when there is none. The spans are valid
 * until the table changes. Inline, because most fields of most requests come from here. */
static inline bool http2_table_get(const struct http2_table *table, uint32_t index,
                                   struct http2_field *ret_field)
{
    if (index >= table->count)
        return false;
    const struct http2_table_entry *entry =
        (const struct http2_table_entry *)(const void *)table->memory + table->first +
        table->count - 1 - index;
    const char *text = table->memory + table->memory_size -
                       (uint16_t)(entry->text_end - table->text_base);

    ret_field->id = entry->id;
    ret_field->name_valid = entry->marks & HTTP2_ENTRY_NAME_VALID;
    ret_field->valid = entry->marks & HTTP2_ENTRY_VALID;
    ret_field->name = span_of(http2_table_names[entry->id].at, entry->name_len);
    ret_field->value = span_of(text, entry->value_len);
    if (!(entry->marks & HTTP2_ENTRY_VALUE_STORED)) {
        ret_field->value.at = NULL;
        ret_field->name.at = entry->id == HTTP2_NAME_OTHER ? NULL : ret_field->name.at;
    } else if (entry->marks & HTTP2_ENTRY_NAME_STORED) {
        ret_field->name.at = text;
        ret_field->value.at += entry->name_len;
    }
    return true;
}
