/* SPDX-License-Identifier: MIT
 *
 * Hashes of passwords, by the system's crypt(3). A comparison is slow on purpose: from some
 * milliseconds to seconds of CPU time, as the hash demands. Any thread may make these calls.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>

enum {
    AUTH_PASSWORD_MAX = 256, /* bytes of a password */
    AUTH_HASH_MAX = 384,     /* of a hash, with its NUL: CRYPT_OUTPUT_SIZE */
};

/* Whether the system's crypt(3) can compare with this hash. */
bool auth_hash_can_use(const char *hash);

/* Whether `password` has this hash: 1, 0, or -ENOMEM. Compares in constant time. */
MUST_USE int auth_hash_compare(const char *hash, const char *password);

/* Makes the hash of a password by yescrypt, with a random salt. 0 or -errno. */
MUST_USE int auth_hash_make(const char *password, char out[AUTH_HASH_MAX]);
