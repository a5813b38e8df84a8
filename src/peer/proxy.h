/* SPDX-License-Identifier: MIT
 *
 * The PROXY protocol, versions 1 and 2: a proxy that passes bytes on begins each connection with a
 * header that names its client. The format is that of the HAProxy project's proxy-protocol.txt.
 * Section numbers below are of this document.
 *
 * The parser is strict, and does not decide whom to believe: session/proxy.h does. It checks the
 * length of the type-length-values (TLV) behind the addresses of version 2, and does not read them.
 */
#pragma once

#include "peer/address.h"

enum {
    /* Bytes of a header of version 1 with its CRLF (section 2.1). */
    PEER_PROXY_LINE_MAX = 107,

    /* Bytes of a header of version 2 with its TLVs. The format allows 64 KiB. The TLVs that proxies
     * send need some hundred bytes. */
    PEER_PROXY_MAX = 4096
};

struct peer_proxy {
    size_t len; /* of the header */

    /* The client. Family 0: the header names none, and the connection is the proxy's own (LOCAL) or
     * of a kind that has no IP address (UNKNOWN, a Unix socket, datagrams). */
    struct peer_address client;
};

enum peer_proxy_result {
    PEER_PROXY_DONE,   /* the header is complete */
    PEER_PROXY_MORE,   /* a valid beginning: call again with more bytes */
    PEER_PROXY_ABSENT, /* the bytes begin with something else */
    PEER_PROXY_BROKEN  /* it begins as a header, and is none */
};

/* Reads the header that begins at `bytes.at`. After PEER_PROXY_MORE, call it again with the same
 * bytes and more behind them. Bytes behind the header are not read. The result does not depend on
 * the pieces in which the bytes arrive. `ret_header` is written with PEER_PROXY_DONE alone. */
enum peer_proxy_result peer_proxy_parse(struct span bytes, struct peer_proxy *ret_header);

/* Whether a connection that begins with `bytes` begins with a PROXY header, or with enough of one
 * to recognise it. */
bool peer_proxy_begins(struct span bytes);
