/* SPDX-License-Identifier: MIT */
#include "config/listen.h"

#include "base/num.h"

#include <arpa/inet.h>
#include <sys/un.h>

#define UNIX SPAN("unix:")

/* The part before the last colon, and the part behind it. */
struct parts {
    struct span host; /* empty when there is no colon */
    struct span port;
    bool colon;
};

static struct parts split(struct span address)
{
    for (size_t at = address.len; at > 0; at--) {
        if (address.at[at - 1] == ']')
            break;
        if (address.at[at - 1] == ':')
            return (struct parts){ span_first(address, at - 1), span_skip(address, at), true };
    }
    return (struct parts){ span_of(address.at, 0), address, false };
}

static bool is_address(int family, struct span text)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (text.len >= sizeof(copy) || memchr(text.at, 0, text.len))
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    return inet_pton(family, copy, bytes) == 1;
}

static bool check_unix(struct span path, struct config_reason *ret_reason)
{
    size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    if (path.len == 0)
        return config_refuse(ret_reason, "`unix:` has no path; write unix:/run/weir.sock");
    if (path.at[path.len - 1] == '/')
        return config_refuse(ret_reason, "`unix:%.*s` is a folder; name a file in it",
                             config_quote_len(path), path.at);
    if (path.len > most)
        return config_refuse(ret_reason,
                             "the path of a Unix socket has %zu bytes, and at most %zu are allowed",
                             path.len, most);
    return true;
}

static bool check_port(struct span address, struct span port, struct config_reason *ret_reason)
{
    uint64_t number;
    if (port.len == 0)
        return config_refuse(ret_reason, "`%.*s` ends without a port; write %.*s8080",
                             config_quote_len(address), address.at, config_quote_len(address),
                             address.at);
    if (!num_parse_u64(port, &number))
        return config_refuse(ret_reason, "`%.*s` is not a port; write a number from 0 to 65535",
                             config_quote_len(port), port.at);
    if (number > 65535)
        return config_refuse(ret_reason, "port %.*s is too large; ports go from 0 to 65535",
                             config_quote_len(port), port.at);
    return true;
}

static bool check_host(struct span host, struct span port, struct config_reason *ret_reason)
{
    int len = config_quote_len(host), port_len = config_quote_len(port);
    if (span_equal(host, SPAN("*")) || is_address(AF_INET, host))
        return true;
    if (host.len == 0)
        return config_refuse(ret_reason,
                             "`:%.*s` has no address; write *:%.*s for all addresses, or "
                             "127.0.0.1:%.*s",
                             port_len, port.at, port_len, port.at, port_len, port.at);
    if (host.at[0] == '[') {
        struct span inside = span_of(host.at + 1, host.len - 1);
        if (inside.len > 0 && inside.at[inside.len - 1] == ']') {
            inside.len--;
            if (is_address(AF_INET6, inside))
                return true;
        }
        return config_refuse(ret_reason, "`%.*s` is not an IPv6 address in brackets, as [::1] is",
                             len, host.at);
    }
    if (memchr(host.at, ':', host.len))
        return config_refuse(ret_reason,
                             "`%.*s:%.*s`: an IPv6 address needs brackets, as in [::1]:8080", len,
                             host.at, port_len, port.at);
    if (span_equal_nocase(host, SPAN("localhost")))
        return config_refuse(ret_reason,
                             "`localhost` is a name; write 127.0.0.1:%.*s or [::1]:%.*s", port_len,
                             port.at, port_len, port.at);
    return config_refuse(ret_reason,
                         "`%.*s` is not an IP address; write one of this machine's, or * for all",
                         len, host.at);
}

bool config_listen_check(struct span address, struct config_reason *ret_reason)
{
    int len = config_quote_len(address);
    if (span_starts(address, UNIX))
        return check_unix(span_skip(address, UNIX.len), ret_reason);
    if (address.len > 0 && address.at[0] == '/')
        return config_refuse(ret_reason, "a Unix socket is written unix:%.*s", len, address.at);
    if (memmem(address.at, address.len, "://", 3))
        return config_refuse(ret_reason, "`%.*s` is a URL; write only address and port", len,
                             address.at);

    struct parts parts = split(address);
    if (parts.colon)
        return check_host(parts.host, parts.port, ret_reason) &&
               check_port(address, parts.port, ret_reason);
    if (span_equal(address, SPAN("*")) || is_address(AF_INET, address) ||
        (address.len > 0 && address.at[address.len - 1] == ']'))
        return config_refuse(ret_reason, "`%.*s` has no port; write %.*s:8080", len, address.at,
                             len, address.at);
    uint64_t number;
    if (!num_parse_u64(address, &number))
        return config_refuse(ret_reason,
                             "`%.*s` is not an address; write 8080, 127.0.0.1:8080, [::1]:8080, "
                             "*:8080 or unix:/path",
                             len, address.at);
    return check_port(address, address, ret_reason);
}

bool config_listen_is_public(struct span address)
{
    if (span_starts(address, UNIX))
        return false;
    struct span host = split(address).host;
    return !span_starts(host, SPAN("127.")) && !span_equal(host, SPAN("[::1]"));
}

bool config_listen_is_any_port(struct span address)
{
    uint64_t number;
    return !span_starts(address, UNIX) && num_parse_u64(split(address).port, &number) &&
           number == 0;
}
