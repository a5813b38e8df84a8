/* SPDX-License-Identifier: MIT
 *
 * The client of one request that a proxy has forwarded, and the scheme that the client has used.
 * The setting forwarded-from names the proxies, and forwarded-field the one field that they write.
 * The other field is ignored, because a proxy that does not write it passes on what the client
 * wrote there.
 */
#pragma once

#include "peer/address.h"

struct session_exchange;
struct session_peer;
struct session_shared;

/* The settings of a process. */
struct session_forwarding {
    struct peer_networks trusted;
    bool standard; /* the field is Forwarded, and not X-Forwarded-For */
};

/* Whether requests of `peer` may have another client. The limit of connections of an address does
 * not apply to it, since its connections are those of many clients. Any thread. */
bool session_forwarded_trusts(const struct session_shared *shared, const struct session_peer *peer);

/* Fills *client, and sets x->client to it: the client that the fields of the request name, or the
 * peer if they name none. Sets x->secure if they name the scheme. Private to session/. */
void session_forwarded_find(struct session_exchange *x, struct session_peer *client);
