/* SPDX-License-Identifier: MIT
 *
 * The keys of session tickets (RFC 5077, RFC 8446 section 4.6.1), in memory that the master shares
 * with its workers and with the master that replaces it. So a client can resume a session in any
 * process. Core dumps leave the keys out, and the memory is not swapped if the limit on locked
 * memory allows that.
 *
 * There are three keys. The current key seals new tickets. The previous key still opens tickets.
 * The next key opens tickets, too: a process that has seen the rotation earlier seals with it.
 *
 * Reading takes no lock and never waits. A reader copies a key and then checks that its place was
 * not written meanwhile. Any content of the memory is safe to read.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TLS_TICKETS_ROTATION_S = 8 * 3600,
    TLS_TICKETS_LIFE_S = 2 * TLS_TICKETS_ROTATION_S /* of a ticket, at most */
};

struct tls_tickets_memory;

/* The caller owns the storage. */
struct tls_tickets {
    struct tls_tickets_memory *memory; /* NULL: closed */
    int fd;                            /* -1: none; CLOEXEC */
};

struct tls_tickets_key {
    unsigned char name[16]; /* is in each ticket */
    unsigned char cipher[32];
    unsigned char mac[32];
};

/* Makes the memory with random keys. 0 or -errno; -ENOMEM also if there are no random numbers. Each
 * `now_ns` is of os_clock_now_ns. */
MUST_USE int tls_tickets_open(struct tls_tickets *tickets, uint64_t now_ns);

/* Takes the descriptor of another master's tickets and maps them. 0 or -errno, and then `fd` is
 * closed; -EPROTO: it has no tickets, or those of another version. */
MUST_USE int tls_tickets_adopt(struct tls_tickets *tickets, int fd);

/* Unmaps and closes. Accepts zeroed storage, and tickets that are closed. */
void tls_tickets_close(struct tls_tickets *tickets);

/* For a worker, before it starts a thread: gives up the right to write the keys, and closes the
 * descriptor. 0 or -errno. */
MUST_USE int tls_tickets_protect(struct tls_tickets *tickets);

/* When the next rotation is due. */
uint64_t tls_tickets_due_ns(const struct tls_tickets *tickets);

/* Rotates if a rotation is due. False: it is not due, another process rotates, or there are no
 * random numbers. Any thread of a master. */
bool tls_tickets_rotate(struct tls_tickets *tickets, uint64_t now_ns);

/* Copies the current key. False: the memory is damaged. Any thread. */
MUST_USE bool tls_tickets_current(const struct tls_tickets *tickets,
                                  struct tls_tickets_key *ret_key);

enum tls_tickets_found { TLS_TICKETS_UNKNOWN, TLS_TICKETS_FRESH, TLS_TICKETS_PREVIOUS };

/* Copies the key of this name. Any thread. */
enum tls_tickets_found tls_tickets_find(const struct tls_tickets *tickets,
                                        const unsigned char name[16],
                                        struct tls_tickets_key *ret_key);
