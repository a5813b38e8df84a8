/* SPDX-License-Identifier: MIT
 *
 * A TLS client without a socket, and the server's side of TLS, for tests of sessions. The client
 * checks no certificate.
 */
#pragma once

#include "tls/connection.h"
#include "tls/selfsigned.h"
#include "tls/server.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <unistd.h>

/* A server for all hosts, whose certificate has these names (NULL at the end). It makes the files
 * in a new folder `folder`, reads them and removes them. `tickets`: NULL for no resumption. Returns
 * NULL after a line on standard error. */
static inline struct tls_server *secure_server(const char *folder, const char *const *names,
                                               const struct tls_tickets *tickets)
{
    char why[TLS_WHY_MAX];
    struct tls_selfsigned own;
    struct tls_server *server = NULL;
    if (tls_selfsigned_get(folder, names, 1, &own, why)) {
        const struct tls_pair pair = { own.file, own.file };
        const struct tls_server_site site = { .name = "test", .pairs = &pair, .pair_count = 1 };
        const struct tls_server_plan plan = {
            .sites = &site, .site_count = 1, .http2 = true, .tickets = tickets
        };
        server = tls_server_new(&plan, why);
        if (unlink(own.file) != 0 || unlink(own.certificate) != 0 || rmdir(folder) != 0)
            perror(folder);
    }
    if (!server)
        (void)fprintf(stderr, "TLS: %s\n", why);
    return server;
}

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

/* The client offers HTTP/2 alone by ALPN (RFC 7301). */
static inline bool secure_offer_http2(struct secure_client *c)
{
    static const unsigned char protocols[] = { 2, 'h', '2' };
    return SSL_set_alpn_protos(c->connection.ssl, protocols, sizeof(protocols)) == 0;
}

static inline void secure_close(struct secure_client *c)
{
    tls_connection_close(&c->connection);
    tls_chunks_trim(&c->chunks, 0);
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
