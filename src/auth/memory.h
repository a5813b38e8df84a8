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
 * Many requests with the same right password can come together. So the memory also knows which
 * credentials are being compared: a request with these needs no attempt of its own, if it waits for
 * the result.
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
    AUTH_FOLLOWERS_MAX = 32,
    AUTH_COMPARE_S = 30, /* a comparison that takes longer is forgotten: its process may be dead */
};

struct auth_memory;

/* Credentials in one site's list, as the memory knows them. */
struct auth_mark {
    uint64_t tag[2];
};

/* 0, or -errno: out of memory, or the system gives no random bytes. */
MUST_USE int auth_memory_new(struct auth_memory **ret_memory);

/* Accepts NULL. The memory stays as long as it is held. */
void auth_memory_free(struct auth_memory *memory);

/* For a comparison that may end after auth_memory_free: until the release it may make all calls but
 * auth_memory_mark. */
void auth_memory_hold(struct auth_memory *memory);
void auth_memory_release(struct auth_memory *memory);

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

/* ---- comparisons under way ---- */

/* Notes that these credentials are to be compared. False: they are noted already, or there is no
 * place for them. Otherwise the caller calls auth_memory_compare_begins at the start of the
 * comparison, and auth_memory_compare_ends in any case. */
MUST_USE bool auth_memory_compare_later(struct auth_memory *memory, const struct auth_mark *mark,
                                        uint64_t now_ns);
void auth_memory_compare_begins(struct auth_memory *memory, const struct auth_mark *mark);
void auth_memory_compare_ends(struct auth_memory *memory, const struct auth_mark *mark);

/* Whether the credentials are noted. `begun`: and whether their comparison has begun. */
bool auth_memory_is_comparing(const struct auth_memory *memory, const struct auth_mark *mark,
                              uint64_t now_ns, bool begun);

/* A request is about to wait for a comparison of its credentials. False: they are not noted, or
 * AUTH_FOLLOWERS_MAX requests of this process wait. After true the caller calls
 * auth_memory_unfollow. */
MUST_USE bool auth_memory_follow(struct auth_memory *memory, const struct auth_mark *mark,
                                 uint64_t now_ns);
void auth_memory_unfollow(struct auth_memory *memory);

/* Waits until the credentials are no longer noted, at most AUTH_COMPARE_S. `begun`: waits for a
 * comparison that has begun alone. A thread that makes several comparisons needs that: another one
 * may be queued behind the caller's. */
void auth_memory_await(const struct auth_memory *memory, const struct auth_mark *mark,
                       uint64_t now_ns, bool begun);
