/* SPDX-License-Identifier: MIT
 *
 * The server's side of TLS for one configuration: certificates and keys of the sites, the policy,
 * the choice by server name (SNI, RFC 6066 section 3), ALPN and ticket keys. It is built before the
 * workers are forked, while the process may still read the keys. Then it does not change, and all
 * threads use it.
 */
#pragma once

#include "base/check.h"

#include <openssl/types.h>
#include <stddef.h>

enum tls_version { TLS_1_2, TLS_1_3 };
enum tls_policy { TLS_INTERMEDIATE, TLS_MODERN };

struct tls_tickets;

/* The files of a certificate chain, leaf first, and of its private key. */
struct tls_pair {
    const char *certificate, *key; /* paths */
};

/* One site. The first one answers clients that name no host, or a host that no site has. */
struct tls_server_site {
    const char *name;
    const char *const *hosts; /* as struct session_site has them; NULL at the end */
    const struct tls_pair *pairs;
    size_t pair_count; /* 0: it has those of the first site */
    enum tls_version lowest;
};

struct tls_server_plan {
    const struct tls_server_site *sites;
    size_t site_count;
    enum tls_policy policy;
    const struct tls_tickets *tickets; /* borrowed until tls_server_free; NULL: no resumption */
};

struct tls_server;

enum { TLS_WHY_MAX = 512 };

/* Builds it, and reads the files. NULL with a one-line reason in `why`, which names the file and
 * the cure. */
struct tls_server *tls_server_new(const struct tls_server_plan *plan, char why[TLS_WHY_MAX]);
void tls_server_free(struct tls_server *server);

/* A connection in accept state; the caller gives it to tls_connection_open. NULL: out of memory. */
SSL *tls_server_accept(struct tls_server *server);

/* The number of the site, in the plan, that the client's server name has chosen. */
size_t tls_server_site_of(const SSL *ssl);

/* Whether the certificate that was chosen covers `host`, in lower case and without port. */
bool tls_server_covers(const SSL *ssl, const char *host, size_t host_len);
