/* SPDX-License-Identifier: MIT
 *
 * The folders of the sites, as the master watches them. A deployment often switches a link to the
 * folder of a new release, or makes a folder again. The workers hold the folder that existed when
 * they started, and their sandbox allows no other folder. So the master compares the names with the
 * folders four times a second, and starts another generation when a name has another folder.
 *
 * A name without a folder starts nothing: the workers answer 404 until the folder is back. One line
 * in the error log reports that, and another one the return of the same folder.
 */
#pragma once

#include "config/config.h"
#include "server/look.h"

#include <sys/types.h>

/* What a name stood for. */
struct server_root {
    const char *name; /* of the folder; borrowed from the configuration */
    struct server_identity opened;
    bool gone; /* the name has no folder now */
};

struct server_roots {
    struct server_root *each; /* the root of every site, and folders of error pages */
    unsigned count;
    unsigned gone;   /* of them, at the last comparison */
    uint64_t due_ns; /* of the next comparison */
};

/* Notes what the names in `config` stand for, before a worker opens them. `config` is borrowed
 * until server_roots_close. 0 or -ENOMEM. */
MUST_USE int server_roots_note(struct server_roots *roots, const struct config *config);

/* At due_ns: whether a name stands for another folder. NULL: none, or it is too early. Logs names
 * that have lost their folder or have it back. */
const char *server_roots_moved(struct server_roots *roots, struct server_look *look,
                               uint64_t now_ns);

/* The folder cannot be served now: the next comparison is made after a longer time. */
void server_roots_postpone(struct server_roots *roots, uint64_t now_ns);

/* Accepts zeroed roots. */
void server_roots_close(struct server_roots *roots);
