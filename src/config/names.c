/* SPDX-License-Identifier: MIT */
#include "config/names.h"

#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

enum { SIZE_LEAST = 64 };

struct config_names_slot {
    const void *scope;
    struct span name;
    const void *value; /* NULL: the slot is empty */
};

/* The slot of the name, or the empty one where it belongs: at least half of the slots are empty. */
static struct config_names_slot *slot_of(const struct config_names *names, const void *scope,
                                         struct span name)
{
    size_t at = hash_bytes(name, (uintptr_t)scope) & (names->size - 1);
    while (names->slots[at].value &&
           (names->slots[at].scope != scope || !span_equal(names->slots[at].name, name)))
        at = (at + 1) & (names->size - 1);
    return &names->slots[at];
}

const void *config_names_find(const struct config_names *names, const void *scope, struct span name)
{
    return names->slots ? slot_of(names, scope, name)->value : NULL;
}

static void grow(struct config_names *names)
{
    struct config_names larger = { .size = names->size > 0 ? names->size * 2 : SIZE_LEAST,
                                   .count = names->count };
    larger.slots = calloc(larger.size, sizeof(*larger.slots));
    CHECK(larger.slots != NULL);
    for (size_t i = 0; i < names->size; i++)
        if (names->slots[i].value)
            *slot_of(&larger, names->slots[i].scope, names->slots[i].name) = names->slots[i];
    free(names->slots);
    *names = larger;
}

void config_names_set(struct config_names *names, const void *scope, struct span name,
                      const void *value)
{
    if (names->count >= names->size / 2)
        grow(names);
    struct config_names_slot *slot = slot_of(names, scope, name);
    names->count += slot->value ? 0 : 1;
    *slot = (struct config_names_slot){ scope, name, value };
}

void config_names_done(struct config_names *names)
{
    free(names->slots);
    *names = (struct config_names){ .slots = NULL };
}
