/* SPDX-License-Identifier: MIT
 *
 * The names that a configuration has given so far: of sites, patterns, hosts and values of lists.
 * It finds what is there twice in a time that does not grow with the number of names.
 *
 * Each name belongs to a scope, which is any address: the same name in two scopes is two names.
 */
#pragma once

#include "base/span.h"

struct config_names {
    struct config_names_slot *slots; /* NULL: no name yet */
    size_t size, count;
};

/* What was set for the name, or NULL. */
const void *config_names_find(const struct config_names *names, const void *scope,
                              struct span name);

/* Sets or replaces it. `name` is borrowed until config_names_done. `value` is not NULL. */
void config_names_set(struct config_names *names, const void *scope, struct span name,
                      const void *value);

/* Frees everything; there is no name again. */
void config_names_done(struct config_names *names);
