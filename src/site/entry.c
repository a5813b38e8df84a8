/* SPDX-License-Identifier: MIT */
#include "site/entry.h"

#include "site/content.h"

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

void site_entry_measure(struct site_entry *entry)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    struct site_cache_entry *cached = &entry->cache;
    size_t bytes = sizeof(*entry) + cached->key_len;

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
