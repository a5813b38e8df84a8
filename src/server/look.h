/* SPDX-License-Identifier: MIT
 *
 * Finds what the names of the configuration stand for on the disk: folders of sites, certificates,
 * lists of users. The master looks at them while it serves, and never waits for the disk.
 *
 * What the kernel has in memory is known at once. Another name, and each file of another machine or
 * process, is looked up by a process (server/errand.h), all of them by one. The caller asks again
 * later. While one disk does not answer, no other name is looked up in this way. Names that the
 * kernel has in memory are followed all the same.
 */
#pragma once

#include "server/errand.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What a name stands for. Zeroed: nothing. */
struct server_identity {
    dev_t device;
    ino_t inode; /* 0: there is no such file */
    off_t size;
    struct timespec changed;
    bool is_folder;
    bool is_remote; /* another machine or process has it */
};

/* Looks now, and waits for the disk. */
struct server_identity server_look_now(const char *name);

struct server_look_name;

struct server_look {
    struct server_look_name *names; /* that a process looks up */
    struct server_errand errand;
    uint64_t begun_ns;                   /* when the errand began */
    const struct server_look_name *hung; /* the name that does not answer; or NULL */
};
#define SERVER_LOOK_NONE ((struct server_look){ .errand = SERVER_ERRAND_NONE })

/* Finds what `name` stands for, which stood for `before`. False: that is not known yet. */
MUST_USE bool server_look_at(struct server_look *look, const char *name,
                             const struct server_identity *before,
                             struct server_identity *ret_identity);

/* Starts a process for the names that were asked for and are not known, and takes what an earlier
 * one has found. Call it before the questions, a few times a second. Logs a disk that does not
 * answer, and its return. */
void server_look_tick(struct server_look *look, uint64_t now_ns);

/* When the next tick is due, or `due_ns` if that is earlier. */
uint64_t server_look_due_ns(const struct server_look *look, uint64_t now_ns, uint64_t due_ns);

/* Drops all names, and the errand that is under way. */
void server_look_forget(struct server_look *look);
