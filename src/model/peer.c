/* SPDX-License-Identifier: MIT */
#include "model/peer.h"

#include <netinet/in.h>

struct session_peer model_peer_of(const struct os_socket_address *address)
{
    struct session_peer peer = { 0 };
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
        peer.family = 4;
        memcpy(peer.address, &in->sin_addr, 4);
    } else if (address->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address->storage;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
        peer.family = mapped ? 4 : 6;
        memcpy(peer.address, in->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    }
    return peer;
}
