/* SPDX-License-Identifier: MIT
 *
 * The users of a file in the form of htpasswd: lines `user:hash`, with comments (#) and empty
 * lines. Hashes are bcrypt, yescrypt and SHA-crypt. A file with any other line is refused as a
 * whole, with the number of the line: a user who silently has no access is hard to find, and a
 * second line for a user would silently replace the first one.
 *
 * A file is read once and never changes. Any thread may look up users.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stddef.h>
#include <stdint.h>

enum {
    AUTH_FILE_MAX = 1024 * 1024, /* bytes of a file */
    AUTH_WHY_MAX = 512,          /* of a reason, with its NUL */
};

struct auth_file;

/* Reads the text of a file. NULL: it cannot be used. Then *ret_line is the number of the line, 0
 * for the file as a whole, and *ret_why is the reason, a sentence. */
struct auth_file *auth_file_parse(struct span text, unsigned *ret_line, const char **ret_why);

/* Reads the file at `path`. NULL, with a one-line reason that begins with the path. */
struct auth_file *auth_file_read(const char *path, char why[AUTH_WHY_MAX]);

/* Accepts NULL. */
void auth_file_free(struct auth_file *file);

size_t auth_file_count(const struct auth_file *file);

/* The hash to compare a user's password with. For a user who is not in the file it is the hash of
 * another one, which `choice` selects, and *ret_known is false. So the comparison takes as long as
 * for a user who is in the file. The same `choice` for the same user gives the same hash, so that
 * the times of several attempts are those of one user. */
const char *auth_file_find(const struct auth_file *file, struct span user, uint64_t choice,
                           bool *ret_known);
