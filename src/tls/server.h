/* SPDX-License-Identifier: MIT
 *
 * The server's side of TLS for one configuration: certificates and keys of the sites, the policy,
 * the choice by server name (SNI, RFC 6066 section 3), ALPN and ticket keys. It is built before the
 * workers are forked, while the process may still read the keys. Then it does not change, and all
 * threads use it.
 */
#pragma once

#include "base/check.h"
#include "tls/identity.h"

#include <openssl/types.h>
#include <stddef.h>

enum tls_version { TLS_1_2, TLS_1_3 };

/* Those of Mozilla's guideline 6.0. Modern is TLS 1.3 only, for all sites. */
enum tls_policy { TLS_INTERMEDIATE, TLS_MODERN };

struct tls_tickets;

/* One site. A server name belongs to the same site as in session/hosts.h: an exact name comes
 * first, then the longest "*.name", then the site without hosts. If no site is without hosts, the
 * first site has all other names. The same site has clients that send no server name. */
struct tls_server_site {
    const char *name;
    const char *const *hosts; /* as struct session_site has them; NULL at the end, or NULL */
    const struct tls_pair *pairs;
    size_t pair_count; /* 0: it has those of the first site */
    enum tls_version lowest;
};

struct tls_server_plan {
    const struct tls_server_site *sites;
    size_t site_count; /* at least 1 */
    enum tls_policy policy;
    bool http2;                        /* ALPN offers h2 before http/1.1 */
    const struct tls_tickets *tickets; /* borrowed until tls_server_free; NULL: no resumption */
};

struct tls_server;

/* Builds it, and reads the files. NULL with a one-line reason in `why`, which names the file and
 * the cure. */
struct tls_server *tls_server_new(const struct tls_server_plan *plan, char why[TLS_WHY_MAX]);

/* Frees the server. No connection of it exists. */
void tls_server_free(struct tls_server *server);

/* The certificates of all sites, each once; NULL after the last one. Lent until tls_server_free. */
const struct tls_identity *tls_server_identity(const struct tls_server *server, size_t index);

/* A connection in accept state; the caller gives it to tls_connection_open. NULL: out of memory. */
SSL *tls_server_accept(struct tls_server *server);

/* The number of the site, in the plan, that the client's server name has chosen. */
size_t tls_server_site_of(const SSL *ssl);

/* Whether every certificate of site number `site` covers `host`, as tls_identity_covers defines it.
 * A resumed connection does not say which of them the client has verified. */
bool tls_server_covers(const struct tls_server *server, size_t site, struct span host);
