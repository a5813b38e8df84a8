/* SPDX-License-Identifier: MIT
 *
 * The fields in which a proxy that speaks HTTP names its clients: Forwarded (RFC 7239) and the
 * older X-Forwarded-For. Each proxy appends an element, so the last one is the word of the nearest
 * proxy. Elements that a client wrote itself come before.
 *
 * So the elements are read from the last to the first, as long as the addresses are those of
 * trusted proxies. The first other address is the client. The text before it is not read, and
 * cannot spoil the rest.
 *
 * The scheme by which the client has sent its request is in the same element of Forwarded (proto),
 * or in X-Forwarded-Proto.
 */
#pragma once

#include "peer/address.h"

enum {
    /* Elements that are read of one request. More are a malformed field. */
    PEER_FORWARDED_ELEMENTS_MAX = 32,

    /* Commas inside the quoted strings of one element. More are malformed. */
    PEER_FORWARDED_COMMAS_MAX = 8
};

enum peer_forwarded_form { PEER_X_FORWARDED_FOR, PEER_FORWARDED };

enum peer_forwarded_result {
    PEER_FORWARDED_NONE,     /* no element yet */
    PEER_FORWARDED_CLIENT,   /* `client` is the client, or the first proxy of trusted ones alone */
    PEER_FORWARDED_HIDDEN,   /* the client is `unknown`, or has a name that is no address */
    PEER_FORWARDED_MALFORMED /* the field is to be ignored */
};

enum peer_forwarded_scheme {
    PEER_FORWARDED_NO_SCHEME, /* the proxy names none, or another one */
    PEER_FORWARDED_HTTP,
    PEER_FORWARDED_HTTPS
};

/* The state of reading one request. Set the first two members, and zero the rest. */
struct peer_forwarded {
    enum peer_forwarded_form form;
    const struct peer_networks *trusted;
    enum peer_forwarded_result result;
    enum peer_forwarded_scheme scheme; /* of the client's request */
    struct peer_address client;
    unsigned elements; /* private: how many were read */
    unsigned schemes;  /* private: elements of X-Forwarded-Proto that were read */
};

/* Reads one line of the field. Lines come from the last to the first. True: the line before it is
 * to be read as well. */
bool peer_forwarded_read(struct peer_forwarded *forwarded, struct span line);

/* The same for a line of X-Forwarded-Proto, after those of X-Forwarded-For. A proxy writes one
 * scheme in place of what it has received, or appends one. A single scheme is that of the client.
 * Of several, the scheme at the place of the client's address counts, from the end. */
bool peer_forwarded_read_scheme(struct peer_forwarded *forwarded, struct span line);
