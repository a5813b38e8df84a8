/* SPDX-License-Identifier: MIT
 *
 * TLS on a user's connection: the handshake, sealed requests, and the user's tickets. The bytes of
 * a request become one record, and all records that wait leave in one send.
 */
#pragma once

#include "load/result.h"
#include "tls/client.h"
#include "tls/connection.h"

struct load_thread;
struct load_user;

/* The number of origins for which a user keeps a ticket. */
enum { LOAD_TLS_TICKETS = 4 };

/* The TLS of one user. It takes some 200 bytes. While the user is connected, OpenSSL takes some
 * 36 KiB. */
struct load_tls {
    struct tls_connection connection; /* ssl is NULL without a connection */
    uint64_t from_ns;                 /* start of the handshake */
    SSL_SESSION *ticket[LOAD_TLS_TICKETS];
    uint32_t origin[LOAD_TLS_TICKETS]; /* of the ticket at the same place */
    unsigned agreed;                   /* place in the thread's table; LOAD_AGREED_MAX: none */
    bool offered;                      /* a ticket, in this handshake */
};

/* Frees the tickets. The user has no connection. */
void load_tls_free(struct load_tls *tls);

/* Starts the handshake of a connection that is made. A failure ends the user's requests. */
void load_tls_begin(struct load_thread *thread, struct load_user *user);

enum load_tls_step { LOAD_TLS_MORE, LOAD_TLS_READY, LOAD_TLS_LOST };

/* Continues the handshake with what connection.in has. READY: the connection is open, and
 * requests may be sealed. LOST: the connection is closed, and the user's requests have ended. */
enum load_tls_step load_tls_continue(struct load_thread *thread, struct load_user *user);

/* Seals at most `bytes` of a request. Returns how many; 0: the connection is closed, and the
 * user's requests have ended. */
size_t load_tls_seal(struct load_thread *thread, struct load_user *user, struct span bytes);

/* Sends what is sealed. false: the rest must wait for EPOLLOUT, or the connection is lost. */
bool load_tls_flush(struct load_thread *thread, struct load_user *user);

/* Ends a connection whose records cannot be read. */
void load_tls_fail(struct load_thread *thread, struct load_user *user);

/* Sends close_notify unless the server has sent its own (RFC 8446 section 6.1), and frees the
 * connection's TLS. */
void load_tls_close(struct load_user *user);
