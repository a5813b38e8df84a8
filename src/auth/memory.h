/* SPDX-License-Identifier: MIT
 *
 * What a process remembers about passwords: the credentials that were right, and the attempts of
 * each address. Both are tables of a fixed size, in memory that child processes share.
 *
 * Right credentials are remembered for AUTH_REMEMBER_S, as 128 bits of HMAC-SHA-256 with a random
 * key of this process. So the next request with them costs about a microsecond, and the memory
 * holds no password. A new list of users comes with a new process, and so with a new key: what was
 * right before is not known there.
 *
 * An address is an IPv4 address, or the first 64 bits of an IPv6 address. It has AUTH_ATTEMPTS at
 * once, and gets a new one each AUTH_ATTEMPT_S. An attempt is counted before the password is
 * compared, and returned when it was right. Addresses share places, as in session/limits.h.
 *
 * No call takes a lock. Any thread may make all calls.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum {
    AUTH_REMEMBER_S = 600,
    AUTH_ATTEMPTS = 10,
    AUTH_ATTEMPT_S = 6,
};

struct auth_memory;

/* Credentials in one site's list, as the memory knows them. */
struct auth_mark {
    uint64_t tag[2];
};

/* 0, or -errno: out of memory, or the system gives no random bytes. */
MUST_USE int auth_memory_new(struct auth_memory **ret_memory);

/* Accepts NULL. */
void auth_memory_free(struct auth_memory *memory);

/* The mark of credentials for the list of users with this number. The mark of an empty password
 * depends on the user alone. False: out of memory. */
MUST_USE bool auth_memory_mark(const struct auth_memory *memory, uint32_t list, struct span user,
                               struct span password, struct auth_mark *ret_mark);

/* Whether credentials were right, no longer than AUTH_REMEMBER_S ago. */
bool auth_memory_knows(const struct auth_memory *memory, const struct auth_mark *mark,
                       uint64_t now_ns);

/* The credentials are right. Others may be forgotten for them. */
void auth_memory_add(struct auth_memory *memory, const struct auth_mark *mark, uint64_t now_ns);

/* Whether the address may try one more password. True: the attempt is counted. `family` is 4 or 6;
 * others (a Unix socket) have no limit. */
MUST_USE bool auth_memory_take_attempt(struct auth_memory *memory, unsigned family,
                                       const uint8_t address[16], uint64_t now_ns);

/* The attempt was no failure: it does not count. */
void auth_memory_return_attempt(struct auth_memory *memory, unsigned family,
                                const uint8_t address[16]);
