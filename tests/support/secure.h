/* SPDX-License-Identifier: MIT
 *
 * A TLS client without a socket, for tests of sessions. It checks no certificate.
 */
#pragma once

#include "tls/connection.h"

#include <openssl/ssl.h>
#include <stdio.h>

struct secure_client {
    struct tls_connection connection;
    struct tls_chunks chunks;
    size_t taken; /* bytes of the server that have been processed */
};

/* False: no memory. */
static inline bool secure_open(struct secure_client *c)
{
    static SSL_CTX *context;
    *c = (struct secure_client){ 0 };
    if (!context)
        context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = context ? SSL_new(context) : NULL;
    if (!ssl)
        return false;
    SSL_set_connect_state(ssl);
    return tls_connection_open(&c->connection, ssl, &c->chunks);
}

static inline void secure_close(struct secure_client *c)
{
    tls_connection_close(&c->connection);
    tls_chunks_free(&c->chunks);
}

static inline void secure_flush(struct secure_client *c, FILE *out)
{
    struct span piece;
    while (tls_wire_pieces(&c->connection.wire, &piece, 1) == 1) {
        (void)fwrite(piece.at, 1, piece.len, out);
        tls_wire_sent(&c->connection.wire, &c->chunks, piece.len);
    }
}

/* Continues the handshake with `received`, which is all that the server has sent so far, and writes
 * to `out` what the server must get. */
static inline enum tls_result secure_shake_hands(struct secure_client *c, struct span received,
                                                 FILE *out)
{
    c->connection.in = span_skip(received, c->taken);
    enum tls_result result = tls_connection_handshake(&c->connection);
    c->taken = received.len - c->connection.in.len;
    secure_flush(c, out);
    return result;
}

/* Encrypts `plain`, `portion` bytes in each record. */
static inline bool secure_seal(struct secure_client *c, struct span plain, size_t portion,
                               FILE *out)
{
    while (plain.len > 0) {
        struct span part = span_first(plain, portion);
        if (tls_connection_write(&c->connection, part) != TLS_DONE)
            return false;
        secure_flush(c, out);
        plain = span_skip(plain, part.len);
    }
    return true;
}

/* Encrypts the end of the client's data. */
static inline void secure_end(struct secure_client *c, FILE *out)
{
    tls_connection_end(&c->connection);
    secure_flush(c, out);
}

/* Decrypts the rest of what the server has sent. False: it is broken. */
static inline bool secure_unseal(struct secure_client *c, struct span received, FILE *out)
{
    char plain[4096];
    size_t len;
    enum tls_result result;
    c->connection.in = span_skip(received, c->taken);
    do {
        result = tls_connection_read(&c->connection, plain, sizeof(plain), &len);
        (void)fwrite(plain, 1, len, out);
    } while (result == TLS_DONE);
    return result != TLS_FAILED && c->connection.in.len == 0;
}
