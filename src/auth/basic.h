/* SPDX-License-Identifier: MIT
 *
 * The credentials of Basic authentication (RFC 7617 section 2): a user and a password, in base64.
 */
#pragma once

#include "auth/hash.h"
#include "base/span.h"

enum {
    AUTH_USER_MAX = 255,   /* bytes of a user's name */
    AUTH_BASIC_MAX = 1024, /* decoded bytes of a field that are read */
};

struct auth_basic {
    struct span user;     /* in `text` */
    const char *password; /* in `text`; 1 to AUTH_PASSWORD_MAX bytes */
    char text[AUTH_BASIC_MAX];
};

/* Reads an Authorization field. False, and nothing is left in `text`: the field has another scheme
 * or another form, or its credentials are longer than any that weir accepts. In credentials no
 * character is a control character. The caller clears them with auth_basic_forget. */
MUST_USE bool auth_basic_read(struct span field, struct auth_basic *ret_basic);

void auth_basic_forget(struct auth_basic *basic);
