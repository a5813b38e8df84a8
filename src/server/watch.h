/* SPDX-License-Identifier: MIT
 *
 * Files that the master has read for a configuration, and looks at from time to time: certificates,
 * keys, lists of users, and rules of sites. It compares what a path stands for. So a link that is
 * switched is seen, too. It reads no contents.
 */
#pragma once

#include "server/look.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server_watch_file {
    const char *path; /* borrowed from the configuration */
    struct server_identity used, seen;
};

/* Zeroed: no file. */
struct server_watch {
    struct server_watch_file *files;
    size_t count;
    uint64_t due_ns; /* of the next look at the files */
    bool quick;      /* looks more often, and a file that is absent counts. Set it first */
};

/* Notes what a path stands for. Call it before the file is read: a change in between shows later.
 * 0 or -ENOMEM. */
MUST_USE int server_watch_add(struct server_watch *watch, const char *path);
void server_watch_close(struct server_watch *watch);

/* At due_ns: the path of a file that is another than the one in use, and no longer changes. NULL:
 * none, or it is too early. A file that is absent changes nothing. In a quick watch it is a change
 * if its folder is there. */
const char *server_watch_changed(struct server_watch *watch, struct server_look *look,
                                 uint64_t now_ns);

/* The present files cannot be used, and `refused`, of the same configuration, has tried them. They
 * are tried again after their next change. */
void server_watch_postpone(struct server_watch *watch, const struct server_watch *refused);

/* The present files cannot be used for another reason. They are tried again after 10 s. */
void server_watch_delay(struct server_watch *watch, uint64_t now_ns);
