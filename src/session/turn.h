/* SPDX-License-Identifier: MIT
 *
 * A path that this thread has proven absent in the present turn of its loop. Many clients may
 * request the same absent path, and each proof costs a system call. One proof is enough for all
 * requests of a turn that began to arrive before the turn. Each of them was under way when the
 * path was absent, so 404 is a right answer to it. A request that began later needs a proof of its
 * own. So no file is hidden that appeared before its request.
 *
 * The loops say which input was there before the turn (reported). The session says which request
 * begins with the oldest byte of such input (usable). Blocking models report nothing.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>

enum { SESSION_TURN_PATH_MAX = 200 };

struct session_site;

/* Zeroed: nothing is proven. */
struct session_turn {
    bool reported; /* the first byte of each feed arrived before the turn */
    bool usable;   /* the request that is answered began before the turn */
    size_t len;    /* of the path; 0: none is proven */
    const struct session_site *site;
    char path[SESSION_TURN_PATH_MAX];
};

/* A turn ends, and the next one begins. */
static inline void session_turn_end(struct session_turn *turn)
{
    turn->reported = turn->usable = false;
    turn->len = 0;
}

static inline bool session_turn_has(const struct session_turn *turn,
                                    const struct session_site *site, struct span path)
{
    return __builtin_expect(turn->len == path.len, 0) && turn->usable && turn->site == site &&
           memcmp(turn->path, path.at, path.len) == 0;
}

/* The path has just been found absent. */
static inline void session_turn_note(struct session_turn *turn, const struct session_site *site,
                                     struct span path)
{
    if (path.len > sizeof(turn->path))
        return;
    memcpy(turn->path, path.at, path.len);
    turn->len = path.len;
    turn->site = site;
}
