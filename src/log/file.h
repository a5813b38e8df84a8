/* SPDX-License-Identifier: MIT
 *
 * Opens the file of a log for appending. The master opens logs, perhaps as root, in folders that
 * other users can write. Such a user could plant a link or a file at the path, to have the master
 * write elsewhere or to read the log. So no link is followed in the last component, and an entry
 * that another user may have planted is refused.
 *
 *   The last component is a regular file, a FIFO or a character device. If it is missing, it is
 *   made as a regular file that other users cannot read (mode 0640).
 *   A folder is shared unless it belongs to root or to this process's user, and only its owner can
 *   write to it. An entry of a shared folder must belong to root or to this process's user, and
 *   must not have a second name. A file may belong to the workers' user, too.
 *   A folder of the path may be a link. In a shared folder the same rule holds for that link.
 *   /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N are descriptors that this process was
 *   started with.
 *   `journal` and `syslog:` are sockets, which log/message.h opens.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <sys/types.h>

struct log_file_opening {
    uid_t user;    /* of the workers; LOG_FILE_NO_USER: as this process's */
    char why[200]; /* out, after an error: the reason, and what to do */
};

#define LOG_FILE_NO_USER ((uid_t)-1)

/* What a descriptor is, when it is passed to another process. */
enum log_file_label { LOG_FILE_ACCESS = 'a', LOG_FILE_ERROR = 'e' };

/* Whether the setting names a file or a socket, and not "-" or "off". */
bool log_file_is_named(const char *setting);

/* Returns a descriptor (CLOEXEC, non-blocking), or -errno. -EPERM: the entry may have been planted.
 * `opening` may be NULL. */
MUST_USE int log_file_open(const char *path, struct log_file_opening *opening);

/* Whether log_file_open would refuse what the path names now. It opens folders only, and makes
 * nothing. 0, also where there is no such file, or the error of log_file_open. */
MUST_USE int log_file_judge(const char *path, struct log_file_opening *opening);
