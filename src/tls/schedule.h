/* SPDX-License-Identifier: MIT
 *
 * The key schedule of TLS 1.3 (RFC 8446 section 7.1), as a provider in this process from which
 * OpenSSL derives the secrets of a handshake. It serves two purposes. OpenSSL 3 has no other way to
 * learn the traffic secrets than a text of 128 calls of sprintf for each (SSL_CTX keylog). And its
 * own implementation searches for the digest and the MAC by name at each of the 25 steps.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdbool.h>

enum { TLS_SECRET_BYTES = 48 /* the most: of SHA-384 */ };

struct tls_secret {
    unsigned char bytes[TLS_SECRET_BYTES];
    bool known;
};

/* The properties of an SSL_CTX that uses the provider; NULL: OpenSSL cannot load it. To be called
 * before threads and forks. */
const char *tls_schedule_properties(void);

/* The first traffic secrets that this thread derives from now on go to `client` and `server`. NULL:
 * to none. */
void tls_schedule_watch(struct tls_secret *client, struct tls_secret *server);

/* HKDF-Expand-Label with an empty context, for a secret of 32 bytes (SHA-256) or 48 (SHA-384), and
 * at most as many bytes of output. False: out of memory. */
MUST_USE bool tls_schedule_expand(struct span secret, struct span label, unsigned char *to,
                                  size_t len);
