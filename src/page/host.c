/* SPDX-License-Identifier: MIT */
#include "page/host.h"

#include <arpa/inet.h>

bool page_host_is_local(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (span_equal_nocase(host, SPAN("localhost")))
        return true;
    bool bracketed = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (bracketed)
        host = span_of(host.at + 1, host.len - 2);
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (!bracketed)
        return inet_pton(AF_INET, text, bytes) == 1 && bytes[0] == 127;
    return inet_pton(AF_INET6, text, bytes) == 1 &&
           memcmp(bytes, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}
