/* SPDX-License-Identifier: MIT */
#include "os/interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool is_wildcard(const struct os_socket_address *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    memcpy(&v4, &address->storage, sizeof(v4));
    memcpy(&v6, &address->storage, sizeof(v6));
    switch (address->storage.ss_family) {
    case AF_INET:
        return v4.sin_addr.s_addr == htonl(INADDR_ANY);
    case AF_INET6:
        return IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
    default:
        return false;
    }
}

/* Makes the address of an interface with the port of `wildcard`. A wildcard of IPv6 stands for IPv4
 * too (os_socket_bind). False: clients cannot use this address. */
static bool make_address(const struct ifaddrs *entry, const struct os_socket_address *wildcard,
                         struct os_socket_address *ret_address)
{
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
        return false;
    *ret_address = (struct os_socket_address){ 0 };
    if (entry->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, entry->ifa_addr, sizeof(in));
        in.sin_port = htons(os_socket_port(wildcard));
        memcpy(&ret_address->storage, &in, sizeof(in));
        ret_address->len = sizeof(in);
        return true;
    }
    if (entry->ifa_addr->sa_family != AF_INET6 || wildcard->storage.ss_family != AF_INET6)
        return false;
    struct sockaddr_in6 in;
    memcpy(&in, entry->ifa_addr, sizeof(in));
    in.sin6_port = htons(os_socket_port(wildcard));
    memcpy(&ret_address->storage, &in, sizeof(in));
    ret_address->len = sizeof(in);
    return !IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr);
}

size_t os_interface_reach(const struct os_socket_address *address,
                          struct os_socket_address *ret_addresses, size_t most)
{
    struct ifaddrs *first = NULL;
    size_t count = 0;
    if (is_wildcard(address) && getifaddrs(&first) == 0) {
        for (const struct ifaddrs *entry = first; entry; entry = entry->ifa_next) {
            struct os_socket_address each;
            if (!make_address(entry, address, &each))
                continue;
            if (count < most)
                ret_addresses[count] = each;
            count++;
        }
        freeifaddrs(first);
    }
    if (count > 0)
        return count;
    ret_addresses[0] = *address;
    return 1;
}
