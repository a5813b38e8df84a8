/* SPDX-License-Identifier: MIT
 *
 * The password of the statistics page: a hash of crypt(3) in the configuration, and
 * Basic authentication (RFC 7617) with any user name.
 *
 * Comparing with such a hash takes a while on purpose, so it is not done for every
 * request: what was accepted last is known by a hash of its own, with a secret
 * seed, and so is what was refused last. Anything else is compared a few times a second, and
 * beyond that answered with "later", before it costs anything. Who is known already
 * does not notice.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum {
    PAGE_PASSWORD_MAX = 256,        /* bytes of a password */
    PAGE_PASSWORD_HASH_MAX = 384,   /* and of a hash, with its NUL: CRYPT_OUTPUT_SIZE */
    PAGE_PASSWORD_CHECKS = 4,       /* unknown ones that are compared in a second */
    PAGE_PASSWORD_FIELD_MAX = 1024, /* bytes of the field that are looked at */
};

enum page_password_verdict { PAGE_PASSWORD_RIGHT, PAGE_PASSWORD_WRONG, PAGE_PASSWORD_LATER };

struct page_password_known {
    bool any;
    uint64_t hash[2];
};

struct page_password {
    const char *hash; /* borrowed; NULL: none is needed */
    uint64_t seed[2];
    struct page_password_known right, wrong;
    uint64_t second;
    unsigned checks;                    /* in that second */
    char text[PAGE_PASSWORD_FIELD_MAX]; /* what is being judged; zeros in between */
};

/* 0 or -errno. */
MUST_USE int page_password_init(struct page_password *password, const char *hash);

/* Judges an Authorization field (empty: there is none) at a time. */
enum page_password_verdict page_password_check(struct page_password *password, struct span field,
                                               uint64_t now_ns);

/* Whether the system's crypt(3) can compare with it. */
bool page_password_can_use(const char *hash);

/* Makes the hash of a password, with a salt of its own. 0 or -errno. */
MUST_USE int page_password_make(const char *password, char out[PAGE_PASSWORD_HASH_MAX]);
