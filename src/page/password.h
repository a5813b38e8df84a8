/* SPDX-License-Identifier: MIT
 *
 * The password of the statistics page: a hash of crypt(3) in the configuration, and Basic
 * authentication (RFC 7617) with any user name.
 *
 * Comparing with such a hash is slow on purpose, so it is not done for every request. The last
 * accepted and the last refused password are remembered by a fast hash with a secret seed. Other
 * passwords are compared at most a few times a second. Beyond that the verdict is "later", at no
 * cost. So a flood of wrong passwords does not disturb a client whose password was accepted.
 */
#pragma once

#include "auth/basic.h"
#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum {
    PAGE_PASSWORD_CHECKS = 4 /* unknown passwords compared in a second */
};

enum page_password_verdict { PAGE_PASSWORD_RIGHT, PAGE_PASSWORD_WRONG, PAGE_PASSWORD_LATER };

struct page_password_known {
    bool any;
    uint64_t hash[2];
};

struct page_password {
    const char *hash; /* borrowed; NULL: no password is needed */
    uint64_t seed[2];
    struct page_password_known right, wrong;
    uint64_t second;
    unsigned checks;         /* in that second */
    struct auth_basic basic; /* the credentials that are judged; zeros otherwise */
};

/* Borrows `hash`. Returns 0 or -errno. */
MUST_USE int page_password_init(struct page_password *password, const char *hash);

/* Judges an Authorization field, which is empty when there is none. */
enum page_password_verdict page_password_check(struct page_password *password, struct span field,
                                               uint64_t now_ns);
