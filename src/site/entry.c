/* SPDX-License-Identifier: MIT */
#include "site/entry.h"

#include "site/allocator.h"
#include "site/content.h"
#include "site/mime.h"

#include <stdlib.h>

struct site_entry_rest *site_entry_make_rest(struct site_entry *entry, struct span markdown)
{
    struct site_entry_rest *there = site_entry_rest(entry);

    if (there != NULL)
        return there;
    struct site_entry_rest *rest = calloc(1, sizeof(*rest) + markdown.len);
    if (rest == NULL)
        return NULL;
    rest->markdown_len = markdown.len;
    if (markdown.len > 0)
        memcpy(rest->markdown, markdown.at, markdown.len);
    if (atomic_compare_exchange_strong_explicit(&entry->rest, &there, rest, memory_order_acq_rel,
                                                memory_order_acquire))
        return rest;
    free(rest); /* another thread was first */
    return there;
}

struct site_made *site_entry_made(struct site_entry *entry)
{
    struct site_entry_rest *rest = site_entry_make_rest(entry, SPAN(""));
    return rest != NULL ? &rest->made : NULL;
}

void site_entry_put(struct site_entry *entry, int variant, struct site_file *file)
{
    if (variant == SITE_PLAIN)
        entry->plain = file;
    else
        site_entry_rest(entry)->sibling[variant] = file;
}

struct site_file *site_entry_sibling(const struct site_entry *entry, int variant)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    return rest != NULL ? rest->sibling[variant] : NULL;
}

uint64_t site_entry_disk(const struct site_entry *entry)
{
    return site_of(entry)->disk;
}

struct span site_entry_type(const struct site_entry *entry)
{
    return site_mime_of_number(site_of(entry)->mime, entry->type);
}

struct span site_entry_markdown(const struct site_entry *entry)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    return rest != NULL ? span_of(rest->markdown, rest->markdown_len) : span_of(NULL, 0);
}

const void *site_entry_rule(const struct site_entry *entry)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    return rest != NULL ? rest->rule : NULL;
}

bool site_entry_set_rule(struct site_entry *entry, const void *rule)
{
    struct site_entry_rest *rest = rule != NULL ? site_entry_make_rest(entry, SPAN(""))
                                                : site_entry_rest(entry);
    if (rest != NULL)
        rest->rule = rule;
    return rest != NULL || rule == NULL;
}

/* Moves the entry and its plain file into one block. */
static void join_plain(struct site_entry **at)
{
    struct site_entry *const entry = *at;
    const struct span key = site_cache_key(&entry->cache);
    char *memory = site_content_pack(site_of(entry), entry->plain, sizeof(*entry), key);

    if (memory == NULL)
        return;
    struct site_entry *joined = (struct site_entry *)(void *)memory;
    memcpy(joined, entry, sizeof(*entry));
    joined->plain = (struct site_file *)(void *)(joined + 1);
    const char *behind = (char *)joined->plain + site_content_head_at(joined->plain);
    site_cache_init(&joined->cache, entry->cache.kind, entry->cache.hash,
                    span_of(behind - key.len, key.len));
    free(entry->plain);
    free(entry);
    *at = joined;
}

void site_entry_pack(struct site_entry **at)
{
    const struct site_entry *entry = *at;

    for (unsigned left = entry->variants & ~(1u << SITE_PLAIN); left != 0; left &= left - 1) {
        const int v = __builtin_ctz(left);
        struct site_file *file = site_entry_file(entry, v);
        char *memory = site_content_pack(site_of(entry), file, 0, SPAN(""));
        if (memory == NULL)
            continue;
        site_entry_put(*at, v, (struct site_file *)(void *)memory);
        free(file);
    }
    join_plain(at);
}

void site_entry_measure(struct site_entry *entry)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    struct site_cache_entry *cached = &entry->cache;
    size_t bytes = sizeof(*entry);

    if (!site_entry_is_joined(entry, entry->plain)) /* otherwise the key is in the form */
        bytes += cached->key_len;

    if (rest != NULL || entry->missing != 0 || entry->untagged != 0) /* a request makes it */
        bytes += sizeof(*rest) + (rest != NULL ? rest->markdown_len : 0);
    cached->descriptors = 0;
    for (unsigned left = entry->variants; left != 0; left &= left - 1) {
        const struct site_file *file = site_entry_file(entry, __builtin_ctz(left));
        bytes += site_content_bytes(file);
        cached->descriptors = (uint8_t)(cached->descriptors + file->open);
    }
    cached->size_bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}
