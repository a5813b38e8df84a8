/* SPDX-License-Identifier: MIT
 *
 * The client's side of TLS: the authorities that it trusts, the name of the server that it
 * requests, and the sessions that it resumes. It makes connections for tls/connection.h, and moves
 * no bytes. All threads use one struct tls_client.
 */
#pragma once

#include "base/check.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum { TLS_CLIENT_WHY_MAX = 384 };

struct tls_client;

struct tls_client_plan {
    const char *authorities; /* file of certificates in PEM form; NULL: those of the system */
    bool insecure;           /* accepts any certificate */
    bool http2;              /* offers h2 before http/1.1 */
};

/* Reads the certificates of the authorities. NULL with a one-line reason in `why`. */
struct tls_client *tls_client_new(const struct tls_client_plan *plan, char why[TLS_CLIENT_WHY_MAX]);
void tls_client_free(struct tls_client *client);

/* Gives a connection in connect state to the host `name`, a domain name or an address without
 * brackets. The caller gives it to tls_connection_open. The certificate must cover `name` (RFC 9110
 * section 4.3.4). A domain name is sent as server name, an address is not (RFC 6066 section 3). The
 * connection offers HTTP/1.1 by ALPN (RFC 7301), and HTTP/2 before it if the plan says so.
 *
 * The session in `*ticket`, if there is one, is offered to the server. Each ticket that the server
 * sends replaces it. `ticket` must stay in place while the connection exists. End the session with
 * tls_client_forget. NULL for `ticket`: no session is offered or kept.
 *
 * NULL: out of memory, or `name` is longer than 255 bytes. */
SSL *tls_client_connect(struct tls_client *client, const char *name, SSL_SESSION **ticket);

/* Frees the session, if there is one. */
void tls_client_forget(SSL_SESSION **ticket);

/* As tls_client_connect without a session. An untrusted certificate does not end the handshake,
 * and tls_client_doubt finds the reason afterwards. */
SSL *tls_client_probe(struct tls_client *client, const char *name);

/* The way to make a certificate trusted. */
enum tls_client_cure {
    TLS_CURE_NONE,      /* the certificate is trusted, or the client accepts any */
    TLS_CURE_AUTHORITY, /* trust its authority */
    TLS_CURE_NAME,      /* request the server by another name */
    TLS_CURE_DATE,      /* renew the certificate, or set the clock */
    TLS_CURE_OTHER
};

/* Judges the certificate of a probe after its handshake. `why` continues a sentence whose subject
 * is the certificate. */
enum tls_client_cure tls_client_doubt(const struct tls_client *client, const SSL *ssl,
                                      const char *name, char why[TLS_CLIENT_WHY_MAX]);

/* Whether the server has sent close_notify. */
bool tls_client_ended(const SSL *ssl);

/* Whether `error`, a code of OpenSSL, says that this client does not trust the certificate. */
bool tls_client_distrusts(unsigned long error);

/* The reason of a failed handshake, by OpenSSL's code. */
const char *tls_client_reason(unsigned long error);
