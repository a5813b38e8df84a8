/* SPDX-License-Identifier: MIT
 *
 * One TLS connection, of a server or a client, between spans of memory. It knows no descriptor and
 * no clock. OpenSSL reads encrypted bytes from the span `in`, which the caller lends for one call,
 * and appends encrypted bytes to `wire`, which the caller sends.
 *
 * A call consumes from `in`. OpenSSL keeps an unfinished record itself, so a call that returns
 * TLS_MORE has consumed everything.
 */
#pragma once

#include "tls/wire.h"

#include <openssl/types.h>
#include <stdint.h>

enum tls_result {
    TLS_DONE,
    TLS_MORE,  /* the call needs more input */
    TLS_ENDED, /* the peer has sent close_notify */
    TLS_FAILED /* the connection must end; `wire` may have an alert for the peer */
};

struct tls_records;

/* The caller owns the storage. */
struct tls_connection {
    SSL *ssl;                    /* NULL: settled */
    struct tls_records *records; /* of the settled connection, or what it begins with; private */
    struct span in;
    struct tls_wire wire;
    struct tls_chunks *chunks; /* of the thread that makes the call; the caller sets it */
    unsigned long error;       /* OpenSSL's code of the first failure; 0: none */
    unsigned messages;         /* without data, since data was read; private */
    bool memory_failed;        /* a chunk could not be allocated */
    bool keys_changed;         /* after the handshake, under OpenSSL; private */
};

/* Takes `ssl`, which is in accept or connect state, and gives it a transport, an info callback and
 * app data of this module. False: out of memory, and `ssl` is freed. `c` must not move
 * afterwards. */
MUST_USE bool tls_connection_open(struct tls_connection *c, SSL *ssl, struct tls_chunks *chunks);

/* Frees everything. Unsent bytes are lost. */
void tls_connection_close(struct tls_connection *c);

/* Continues the handshake. TLS_DONE: it is complete. */
enum tls_result tls_connection_handshake(struct tls_connection *c);

/* Whether the handshake, which is complete, has agreed on HTTP/2 by ALPN (RFC 7301). */
bool tls_connection_is_http2(const struct tls_connection *c);

/* Decrypts into `to`, at most `size` bytes, until `in` and what OpenSSL has decrypted are consumed
 * or `to` is full. TLS_DONE: `to` is full, and more may be left. With any result, *ret_len bytes
 * are in `to`. */
enum tls_result tls_connection_read(struct tls_connection *c, char *to, size_t size,
                                    size_t *ret_len);

/* The choices of the server, after the handshake. */
struct tls_agreement {
    const char *protocol, *cipher; /* constants; "": not known */
    const char *group;             /* the same, but the context of the connection lends it */
    bool resumed;
};
struct tls_agreement tls_connection_agreed(const struct tls_connection *c);

/* Encrypts `plain` into as few records as it fills. */
enum tls_result tls_connection_write(struct tls_connection *c, struct span plain);

/* Encrypts pieces into one record. Together they have 1 to TLS_RECORD_BYTES bytes. OpenSSL needs
 * them in one piece: if it still has the connection, they are copied to `scratch`, which has
 * space for a record. One piece may be in `scratch`, if it is the only one. */
enum tls_result tls_connection_write_pieces(struct tls_connection *c, const struct span *pieces,
                                            unsigned count, char *scratch);

/* Appends close_notify. */
void tls_connection_end(struct tls_connection *c);

/* Whether decrypted bytes wait for tls_connection_read, without any further input. */
bool tls_connection_has_plain(const struct tls_connection *c);

/* Whether the first byte of a connection is of plain HTTP: a letter. That of a ClientHello is 22
 * (RFC 8446 section 5.1). */
static inline bool tls_connection_is_plain(char first)
{
    return ascii_lower(first) >= 'a' && ascii_lower(first) <= 'z';
}

/* A connection of TLS 1.3 that stays open gives up OpenSSL's SSL, if OpenSSL keeps no bytes of it
 * and has derived its secrets with tls/schedule.h. Otherwise OpenSSL frees its buffers, unless they
 * hold bytes. Each call that needs one allocates it. */
void tls_connection_settle(struct tls_connection *c);
