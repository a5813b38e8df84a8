/* SPDX-License-Identifier: MIT
 *
 * The client's side of TLS: whom it trusts, the name that it requests, and sessions that it
 * resumes. All threads use one struct tls_client.
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
};

/* Reads the certificates of the authorities. NULL with a one-line reason in `why`. */
struct tls_client *tls_client_new(const struct tls_client_plan *plan, char why[TLS_CLIENT_WHY_MAX]);
void tls_client_free(struct tls_client *client);

/* A connection in connect state to the host `name`, a domain name or an address without brackets.
 * The certificate must cover `name` (RFC 9110 section 4.3.4). A domain name is sent as server name
 * (RFC 6066 section 3); an address is not. It offers HTTP/1.1 by ALPN.
 *
 * `ticket` is where the newest session of this connection is put; it must stay in place while the
 * connection exists. The session that is there is offered to the server. End it with
 * tls_client_forget. NULL: no session is offered or kept. Returns NULL when out of memory. */
SSL *tls_client_connect(struct tls_client *client, const char *name, SSL_SESSION **ticket);

/* Frees the session, if there is one. */
void tls_client_forget(SSL_SESSION **ticket);

/* As tls_client_connect without a session, but an untrusted certificate does not end the
 * handshake: tls_client_doubt finds the reason afterwards. */
SSL *tls_client_probe(struct tls_client *client, const char *name);

/* What ends a doubt about a certificate. */
enum tls_client_cure {
    TLS_CURE_NONE,      /* the certificate is trusted, or need not be */
    TLS_CURE_AUTHORITY, /* to trust its authority */
    TLS_CURE_NAME,      /* another name in the URL */
    TLS_CURE_DATE,      /* another certificate, or another time */
    TLS_CURE_OTHER
};

/* Why the certificate of a probe is not trusted, after its handshake: `why` continues a sentence
 * whose subject is the certificate. */
enum tls_client_cure tls_client_doubt(const struct tls_client *client, const SSL *ssl,
                                      const char *name, char why[TLS_CLIENT_WHY_MAX]);

/* What both sides have agreed on, after the handshake. */
struct tls_client_agreement {
    const char *protocol, *cipher, *group; /* lent by OpenSSL; "": not known */
    bool resumed;
};
struct tls_client_agreement tls_client_agreed(const SSL *ssl);

/* Whether the server has sent close_notify. */
bool tls_client_ended(const SSL *ssl);

/* Whether `error`, a code of OpenSSL, says that this client does not trust the certificate. */
bool tls_client_distrusts(unsigned long error);

/* The reason of a failed handshake, by OpenSSL's code. */
const char *tls_client_reason(unsigned long error);
