/* SPDX-License-Identifier: MIT
 *
 * Answers as they arrive on a user's connection: received, decrypted where it uses TLS, parsed and
 * counted.
 */
#pragma once

#include "load/user.h"

#include <stdbool.h>

/* What a whole answer had. */
struct load_answer {
    uint64_t first_byte_ns, body_bytes;
    uint64_t body_hash; /* with LOAD_VERIFY_HASH */
    unsigned status;
};

/* Counts the whole answer to a request, if the request is. thread->now_ns is its end. */
void load_answer_count(struct load_thread *thread, const struct load_user *user,
                       const struct load_asked *asked, const struct load_answer *answer);

/* The hash of a body is FNV-1a: it does not depend on how the bytes are divided. */
#define LOAD_ANSWER_HASH UINT64_C(0xcbf29ce484222325)
uint64_t load_answer_hash(uint64_t hash, struct span bytes);

/* Keeps the part of a head or frame that has arrived in user->tail. false: out of memory. */
MUST_USE bool load_answer_keep_tail(struct load_user *user, struct span rest);

/* Receives until nothing is left, or until other users must have their turn. `to_its_end`: the
 * server has closed its side. false: the connection is closed, and its requests have ended. */
bool load_answer_receive(struct load_thread *thread, struct load_user *user, bool to_its_end);
