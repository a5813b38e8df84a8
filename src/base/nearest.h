/* SPDX-License-Identifier: MIT
 *
 * "Did you mean ...?": the known name that a mistyped one probably stands for. Case and
 * the difference between `-` and `_` cost nothing. One slip in about three letters is
 * forgiven: a letter too many, too few or wrong, or two letters exchanged. An
 * abbreviation of at least four letters is forgiven, too, and the end of a name
 * that has several words.
 */
#pragma once

#include "base/span.h"

/* The number of slips that turn `a` into `b`. Names longer than 48 bytes are never near. */
unsigned nearest_distance(struct span a, struct span b);

/* The search of one name among candidates that are offered one by one. */
struct nearest {
    struct span wanted;
    const char *best;  /* lent by the caller; NULL: no candidate was near so far */
    unsigned distance; /* of `best` */
};

struct nearest nearest_to(struct span wanted);
void nearest_offer(struct nearest *nearest, const char *name);

/* The nearest of `names` (NULL at the end), or NULL. */
const char *nearest_of(struct span wanted, const char *const *names);
