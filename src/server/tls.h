/* SPDX-License-Identifier: MIT
 *
 * The TLS of one configuration, as the master makes it: it reads the certificates and keys of the
 * sites before the workers are forked, while the process may read them. Workers inherit the result
 * and open no file for it. The master then watches the files. It does not serve.
 *
 * The process of the statistics page has a result of its own, without the keys of tickets, so that
 * it cannot open the sessions of the sites.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"
#include "server/watch.h"
#include "stats/segment.h"
#include "tls/selfsigned.h"
#include "tls/server.h"
#include "tls/tickets.h"

#include <stdint.h>

/* Zeroed: no address has TLS. */
struct server_tls {
    struct tls_server *server; /* of the sites; NULL: no address of `listen` has TLS */
    struct tls_server *page;   /* of the statistics page, which takes it (server/page.h); or NULL */
    bool complete;             /* all certificates were read */
    struct server_watch watch; /* certificates and keys */
    struct tls_tickets *tickets; /* borrowed; NULL: no address of `listen` has TLS */
    size_t certificate_count;
    struct stats_certificate *certificates; /* for the statistics; the first end comes first */
    struct tls_selfsigned *local; /* the certificate for this machine alone; NULL: not in use */
    char *warnings;               /* why clients may refuse certificates, a line each; or NULL */
};

/* Reads the files of a configuration, and makes a certificate for this machine if no site has one.
 * Opens `tickets` if they are closed. Borrows the configuration and `tickets` until
 * server_tls_close. 0, or -errno with a one-line reason in `why`. Call server_tls_close in any
 * case. */
MUST_USE int server_tls_open(struct server_tls *tls, const struct config *config,
                             struct tls_tickets *tickets, char why[TLS_WHY_MAX]);
void server_tls_close(struct server_tls *tls);

/* Whether an address of `listen` or `stats-listen` begins with https://. */
bool server_tls_is_wanted(const struct config *config);

/* The port of the first address of `listen` with TLS. 0: none, or the kernel picks it. */
uint16_t server_tls_port(const struct config *config);

/* Writes warning number `index`, counted from 0, about a certificate of the site: why clients may
 * refuse it. False: there are no more. */
bool server_tls_warning(const struct config_site *site, const struct tls_identity *identity,
                        unsigned index, int64_t now_s, char out[TLS_WHY_MAX]);

/* The site whose certificates the sites without any have over https. NULL: no site has one, or no
 * address of `listen` has TLS. */
const struct config_site *server_tls_lender(const struct config *config);

/* Logs these warnings for the certificates of all sites, which the page has, too. */
void server_tls_warn(const struct server_tls *tls);

/* Certificate number `index` of the site, and its key. Without tls-key, the file of the certificate
 * has both. */
struct tls_pair server_tls_pair(const struct config_site *site, size_t index);
