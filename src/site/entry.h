/* SPDX-License-Identifier: MIT
 *
 * The rest of an entry: what few entries have. Most entries are one plain file, so that a large
 * cache uses little memory for each. The rest is one allocation beside the entry, which the entry
 * owns. Its first user makes it: the thread that loads, or a request that has the compressor make
 * something. Its fields are those of the entry: after site_publish only the atomics change.
 *
 * Private to site/.
 */
#pragma once

#include "site/made.h"

struct site_entry_rest {
    struct site_file *sibling[SITE_PLAIN]; /* forms other than the plain file, or NULL */
    const void *rule;                      /* site_entry_rule */
    uint64_t until_ns; /* of a listing: when it is rendered again; 0 for a file */
    struct site_made made;
    size_t markdown_len;
    char markdown[]; /* the path of the page in Markdown */
};

/* NULL: the entry has none. */
static inline struct site_entry_rest *site_entry_rest(const struct site_entry *entry)
{
    return atomic_load_explicit(&entry->rest, memory_order_acquire);
}

/* The same, made where it is missing. Copies `markdown` into a new one. NULL without memory. Any
 * thread. */
struct site_entry_rest *site_entry_make_rest(struct site_entry *entry, struct span markdown);

/* The compressor's part of an entry, made where it is missing. NULL without memory. Any thread. */
struct site_made *site_entry_made(struct site_entry *entry);

/* Whether this form is in one block with its entry. Then it is not freed by itself. Between two
 * blocks there are bytes of the allocator's, so another form never is at this address. */
static inline bool site_entry_is_joined(const struct site_entry *entry,
                                        const struct site_file *file)
{
    return (const char *)file == (const char *)(entry + 1);
}

/* Moves the forms in memory into the memory of cached files, and the entry with its plain file. *at
 * is where the entry is afterwards. Forms that do not move stay as they are. The entry is not
 * published yet. */
void site_entry_pack(struct site_entry **at);

/* Sets the costs of the entry for the cache: its bytes, and its open files. The entry is not
 * published yet. */
void site_entry_measure(struct site_entry *entry);

/* Puts a form in its place, without freeing the one before. A sibling needs a rest. The entry is
 * not published yet. */
void site_entry_put(struct site_entry *entry, int variant, struct site_file *file);
