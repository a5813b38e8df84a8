/* SPDX-License-Identifier: MIT
 *
 * Access to what needs a password (the setting `auth`): Basic authentication, RFC 7617.
 * session/guard.h says which password, and session/plan.c calls this before any file is looked up.
 * So no answer to a client without a password depends on what the site has.
 *
 * The comparison with a hash is slow on purpose. In a thread that serves several connections it is
 * a task, and the answer is pending meanwhile. A thread of one connection compares in the call.
 * Right credentials are remembered (auth/memory.h), so the next request is answered at once.
 *
 * Private to session/, but for the structs that the server fills.
 */
#pragma once

#include "auth/file.h"
#include "auth/memory.h"
#include "session/answer.h"

enum {
    SESSION_CHALLENGE_MAX = 160, /* bytes of a challenge */
    SESSION_CHECKS_MAX = 64,     /* passwords that wait for their comparison, in each process */
    SESSION_CHECKERS = 2,        /* threads that compare */
};

/* The passwords of a site, or of some of its paths. The server fills it before any thread
 * starts. */
struct session_access {
    const struct auth_file *users;
    uint32_t number;       /* of the list of users, in this process */
    struct span challenge; /* "WWW-Authenticate: ...\r\n" */
};

/* What the sites with passwords of a process share. */
struct session_guard {
    struct auth_memory *memory;
    _Atomic unsigned checks; /* that threads of one connection make now */
};

/* Why a request has access or has none. */
enum session_access_verdict {
    SESSION_ACCESS_OPEN,       /* no password is needed */
    SESSION_ACCESS_REMEMBERED, /* the credentials were right before */
    SESSION_ACCESS_RIGHT,
    SESSION_ACCESS_PENDING,
    SESSION_ACCESS_MISSING, /* the request has no credentials that can be read */
    SESSION_ACCESS_WRONG,
    SESSION_ACCESS_LIMITED, /* the address has had too many wrong passwords */
    SESSION_ACCESS_BUSY,    /* too many passwords wait, or memory or a thread is missing */
};

/* Decides about a request that needs the password x->access. With SESSION_ACCESS_PENDING,
 * x->pending has the request, and the caller keeps it. */
enum session_access_verdict session_access_decide(struct session_exchange *x);

/* Answers a request that has no access: 401, 429 or 503. */
void session_access_refuse(struct session_exchange *x, enum session_access_verdict verdict);

/* Writes the challenge for a realm, which has no quotes, backslashes or control characters. */
struct span session_access_challenge(char out[SESSION_CHALLENGE_MAX], const char *realm);
