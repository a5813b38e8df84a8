/* SPDX-License-Identifier: MIT
 *
 * "Did you mean ...?": the name that somebody probably meant. Case and the
 * difference between `-` and `_` cost nothing; one slip (a letter too many, too
 * few, wrong, or two exchanged) in about three letters is forgiven, and so is an
 * abbreviation of at least four letters.
 */
#pragma once

#include "base/span.h"

/* How many slips turn `a` into `b`; names longer than 48 bytes are never near. */
unsigned config_nearest_distance(struct span a, struct span b);

/* The search of one name among candidates that are offered one by one. */
struct config_nearest {
    struct span wanted;
    const char *best;  /* lent by the caller; NULL: nothing is near so far */
    unsigned distance; /* of `best` */
};

struct config_nearest config_nearest_to(struct span wanted);
void config_nearest_offer(struct config_nearest *nearest, const char *name);

/* The nearest of `names` (NULL at the end), or NULL. */
const char *config_nearest_of(struct span wanted, const char *const *names);
