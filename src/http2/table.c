/* SPDX-License-Identifier: MIT
 *
 * The entries begin at the low end of the memory, oldest first. Their text begins at the high end
 * and grows downwards. Eviction leaves a gap at both ends, which closes when the space between is
 * too small. So most additions move nothing.
 */
#include "http2/table.h"

#include "base/check.h"

#include <http2_names.inc> /* made by tools/hpack_tables.py */

enum {
    FIELD_OVERHEAD = 32, /* RFC 7541 section 4.1 */
    GROWTH = 64,         /* memory is granted in such steps, so that it grows seldom */
};

#define NAME(name, text, index) { text, sizeof(text) - 1 },
const struct span http2_table_names[HTTP2_NAME_COUNT] = {
    { "", 0 },
#include "http2/names.def"
};
#undef NAME

#define NAME(name, text, index) index,
static const uint8_t name_indexes[HTTP2_NAME_COUNT] = {
    0,
#include "http2/names.def"
};
#undef NAME

#define NAME(name, text, index) static const char text_of_##name[] = text;
#include "http2/names.def"
#undef NAME

#define STATIC(enum_name, text) \
    { .name = { text_of_##enum_name, sizeof(text_of_##enum_name) - 1 }, \
      .value = { text, sizeof(text) - 1 }, \
      .id = HTTP2_NAME_##enum_name, \
      .name_valid = true, \
      .valid = true },
const struct http2_field http2_table_static[HTTP2_TABLE_STATIC_COUNT + 1] = {
    { .id = HTTP2_NAME_OTHER },
#include "http2/static.def"
};
#undef STATIC

/* The slot of a name in name_slots. tools/hpack_tables.py chooses the factors with the same
 * formula. */
static unsigned slot_of(struct span text)
{
    unsigned length = (unsigned)text.len * LENGTH_FACTOR;
    unsigned last = (unsigned char)text.at[text.len - 1] * (unsigned)LAST_FACTOR;

    return (length + last + (unsigned char)text.at[text.len / 2] + (unsigned char)text.at[0]) %
           SLOTS;
}

enum http2_name http2_table_name(struct span text)
{
    if (text.len == 0)
        return HTTP2_NAME_OTHER;
    unsigned name = name_slots[slot_of(text)];
    return span_equal(http2_table_names[name], text) ? (enum http2_name)name : HTTP2_NAME_OTHER;
}

unsigned http2_table_name_index(enum http2_name name)
{
    return name_indexes[name];
}

void http2_table_init(struct http2_table *table, const bool *keeps)
{
    *table = (struct http2_table){ .keeps = keeps, .size_max = HTTP2_TABLE_MAX };
}

static inline struct http2_table_entry *entries(const struct http2_table *table)
{
    return (struct http2_table_entry *)(void *)table->memory;
}

static inline size_t text_len(const struct http2_table_entry *entry)
{
    return (entry->marks & HTTP2_ENTRY_NAME_STORED ? entry->name_len : 0u) +
           (entry->marks & HTTP2_ENTRY_VALUE_STORED ? entry->value_len : 0u);
}

/* The first byte of an entry's text. */
static inline char *text_at(const struct http2_table *table, const struct http2_table_entry *entry)
{
    return table->memory + table->memory_size - (uint16_t)(entry->text_end - table->text_base);
}

/* Bytes between the high end of the memory and the oldest entry's text. */
static size_t text_gap(const struct http2_table *table)
{
    const struct http2_table_entry *oldest = &entries(table)[table->first];

    if (table->count == 0)
        return (uint16_t)(table->text_end - table->text_base);
    return (uint16_t)(oldest->text_end - table->text_base) - text_len(oldest);
}

/* Bytes of text that belong to an entry. */
static size_t text_used(const struct http2_table *table)
{
    if (!table->memory)
        return 0;
    return (uint16_t)(table->text_end - table->text_base) - text_gap(table);
}

size_t http2_table_used(const struct http2_table *table)
{
    return table->count * sizeof(struct http2_table_entry) + text_used(table);
}

void http2_table_move(struct http2_table *table, char *memory, size_t size)
{
    CHECK(size >= http2_table_used(table) && size <= HTTP2_TABLE_MEMORY_MAX);
    if (table->count > 0) {
        size_t len = text_used(table);
        const char *text = table->memory + table->memory_size - text_gap(table) - len;
        memcpy(memory, entries(table) + table->first,
               table->count * sizeof(struct http2_table_entry));
        memcpy(memory + size - len, text, len);
        table->text_base = (uint16_t)(table->text_end - len);
    } else {
        table->text_base = table->text_end;
    }
    table->first = 0;
    table->memory = memory;
    table->memory_size = (uint16_t)size;
}

static void evict_oldest(struct http2_table *table)
{
    const struct http2_table_entry *oldest = &entries(table)[table->first];

    table->size = (uint16_t)(table->size - oldest->name_len - oldest->value_len - FIELD_OVERHEAD);
    table->first++;
    table->count--;
}

bool http2_table_resize(struct http2_table *table, uint64_t size_max)
{
    if (size_max > HTTP2_TABLE_MAX)
        return false;
    table->size_max = (uint16_t)size_max;
    while (table->size > size_max)
        evict_oldest(table);
    return true;
}

/* How many of the oldest entries go when a field of `size` bytes is added, and how much memory the
 * others use. */
static unsigned count_evictions(const struct http2_table *table, size_t size, size_t *ret_used)
{
    size_t used = http2_table_used(table), left = table->size;
    unsigned count = 0;

    for (; left + size > table->size_max; count++) {
        const struct http2_table_entry *oldest = &entries(table)[table->first + count];
        left -= (size_t)oldest->name_len + oldest->value_len + FIELD_OVERHEAD;
        used -= sizeof(struct http2_table_entry) + text_len(oldest);
    }
    *ret_used = used;
    return count;
}

/* Moves the entries to the low end, and their text to the high end. */
static void close_gaps(struct http2_table *table)
{
    size_t len = text_used(table), gap = text_gap(table);
    char *text = table->memory + table->memory_size - gap - len;

    memmove(table->memory, entries(table) + table->first,
            table->count * sizeof(struct http2_table_entry));
    memmove(text + gap, text, len);
    table->first = 0;
    table->text_base = (uint16_t)(table->text_base + gap);
}

/* Whether an entry with `len` bytes of text fits between the entries and their text. */
static bool fits_between(const struct http2_table *table, size_t len)
{
    size_t low = (table->first + table->count + 1u) * sizeof(struct http2_table_entry);
    size_t high = (uint16_t)(table->text_end - table->text_base) + len;

    return low + high <= table->memory_size;
}

/* Writes the entry and its text into free space. */
static void write_newest(struct http2_table *table, const struct http2_table_entry *entry,
                         struct span name, struct span value)
{
    struct http2_table_entry *newest = &entries(table)[table->first + table->count];
    size_t len = text_len(entry);

    table->text_end = (uint16_t)(table->text_end + len);
    *newest = *entry;
    newest->text_end = table->text_end;
    char *text = text_at(table, newest);
    if (entry->marks & HTTP2_ENTRY_NAME_STORED)
        memcpy(text, name.at, name.len);
    if (entry->marks & HTTP2_ENTRY_VALUE_STORED)
        memcpy(text + len - value.len, value.at, value.len);
    table->count++;
    table->size = (uint16_t)(table->size + name.len + value.len + FIELD_OVERHEAD);
}

size_t http2_table_add(struct http2_table *table, const struct http2_field *field)
{
    size_t size = field->name.len + field->value.len + FIELD_OVERHEAD;
    bool stores = !table->keeps || table->keeps[field->id];
    size_t used;

    /* RFC 7541 section 4.4: a field larger than the table empties it, and is not an error. */
    if (size > table->size_max) {
        while (table->count > 0)
            evict_oldest(table);
        return 0;
    }
    struct http2_table_entry entry = {
        .name_len = (uint16_t)field->name.len,
        .value_len = (uint16_t)field->value.len,
        .id = field->id,
        .marks = (uint8_t)((field->name_valid ? HTTP2_ENTRY_NAME_VALID : 0) |
                           (field->valid ? HTTP2_ENTRY_VALID : 0) |
                           (stores ? HTTP2_ENTRY_VALUE_STORED : 0) |
                           (stores && field->id == HTTP2_NAME_OTHER ? HTTP2_ENTRY_NAME_STORED : 0)),
    };
    unsigned evictions = count_evictions(table, size, &used);
    size_t len = text_len(&entry), needed = used + sizeof(entry) + len;
    if (needed > table->memory_size) {
        needed += needed / 8 + GROWTH;
        return needed < HTTP2_TABLE_MEMORY_MAX ? needed : HTTP2_TABLE_MEMORY_MAX;
    }

    for (; evictions > 0; evictions--)
        evict_oldest(table);
    if (!fits_between(table, len))
        close_gaps(table);
    write_newest(table, &entry, field->name, field->value);
    return 0;
}
