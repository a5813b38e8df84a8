/* SPDX-License-Identifier: MIT */
#include "config/address.h"

#include "base/buf.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <sys/un.h>

#define UNIX      SPAN("unix:")
#define HTTP      SPAN("http://")
#define HTTPS     SPAN("https://")
#define LOCALHOST SPAN("localhost")

/* ---- addresses to listen on ---- */

/* The parts before and after the last colon. */
struct parts {
    struct span host; /* empty when there is no colon */
    struct span port;
    bool colon;
};

static struct parts split_address(struct span address)
{
    for (size_t at = address.len; at > 0; at--) {
        if (address.at[at - 1] == ']')
            break;
        if (address.at[at - 1] == ':')
            return (struct parts){ span_first(address, at - 1), span_skip(address, at), true };
    }
    return (struct parts){ span_of(address.at, 0), address, false };
}

static bool read_address(int family, struct span text, unsigned char bytes[sizeof(struct in6_addr)])
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len >= sizeof(copy) || memchr(text.at, 0, text.len))
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = 0;
    return inet_pton(family, copy, bytes) == 1;
}

static bool is_address(int family, struct span text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return read_address(family, text, bytes);
}

static bool check_unix(struct span path, struct config_reason *ret_reason)
{
    size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    if (path.len == 0)
        return config_problem_refuse(ret_reason, "`unix:` has no path; write unix:/run/weir.sock");
    if (path.at[path.len - 1] == '/')
        return config_problem_refuse(ret_reason, "`unix:%.*s` is a folder; name a file in it",
                                     config_problem_quote_len(path), path.at);
    if (path.len > most)
        return config_problem_refuse(
            ret_reason, "the path of a Unix socket has %zu bytes, and at most %zu are allowed",
            path.len, most);
    return true;
}

static bool check_port(struct span address, struct span port, struct config_reason *ret_reason)
{
    uint64_t number;
    if (port.len == 0)
        return config_problem_refuse(ret_reason, "`%.*s` ends without a port; write %.*s8080",
                                     config_problem_quote_len(address), address.at,
                                     config_problem_quote_len(address), address.at);
    if (!num_parse_u64(port, &number))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a port; write a number from 0 to 65535",
                                     config_problem_quote_len(port), port.at);
    if (number > 65535)
        return config_problem_refuse(ret_reason, "port %.*s is too large; ports go from 0 to 65535",
                                     config_problem_quote_len(port), port.at);
    return true;
}

static bool check_listen_host(struct span host, struct span port, struct config_reason *ret_reason)
{
    int len = config_problem_quote_len(host), port_len = config_problem_quote_len(port);
    if (span_equal(host, SPAN("*")) || is_address(AF_INET, host) ||
        span_equal_nocase(host, LOCALHOST))
        return true;
    if (host.len == 0)
        return config_problem_refuse(ret_reason,
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
        if (memchr(host.at, '%', host.len))
            return config_problem_refuse(ret_reason,
                                         "`%.*s` has a zone, and weir accepts on no address with "
                                         "one; write [::]:%.*s for all addresses",
                                         len, host.at, port_len, port.at);
        return config_problem_refuse(
            ret_reason, "`%.*s` is not an IPv6 address in brackets, as [::1] is", len, host.at);
    }
    if (span_equal_nocase(host, SPAN("http")) || span_equal_nocase(host, SPAN("https")))
        return config_problem_refuse(ret_reason, "`%.*s:%.*s` has no address; write %.*s://*:%.*s",
                                     len, host.at, port_len, port.at, len, host.at, port_len,
                                     port.at);
    if (memchr(host.at, ':', host.len))
        return config_problem_refuse(
            ret_reason, "`%.*s:%.*s`: an IPv6 address needs brackets, as in [::1]:8080", len,
            host.at, port_len, port.at);
    return config_problem_refuse(
        ret_reason, "`%.*s` is not an IP address; write one of this machine's, or * for all", len,
        host.at);
}

/* Whether `address` is a host that has no port. */
static bool lacks_port(struct span address)
{
    return span_equal(address, SPAN("*")) || is_address(AF_INET, address) ||
           span_equal_nocase(address, LOCALHOST) || span_ends(address, SPAN("]"));
}

static bool check_plain(struct span address, struct config_reason *ret_reason)
{
    int len = config_problem_quote_len(address);
    if (span_starts(address, UNIX))
        return check_unix(span_skip(address, UNIX.len), ret_reason);
    if (address.len > 0 && address.at[0] == '/')
        return config_problem_refuse(ret_reason, "a Unix socket is written unix:%.*s", len,
                                     address.at);
    struct parts parts = split_address(address);
    if (parts.colon)
        return check_listen_host(parts.host, parts.port, ret_reason) &&
               check_port(address, parts.port, ret_reason);
    if (lacks_port(address))
        return config_problem_refuse(ret_reason, "`%.*s` has no port; write %.*s:8080", len,
                                     address.at, len, address.at);
    uint64_t number;
    if (!num_parse_u64(address, &number))
        return config_problem_refuse(
            ret_reason,
            "`%.*s` is not an address; write 8080, 127.0.0.1:8080, [::1]:8080, "
            "*:8080, https://*:443 or unix:/path",
            len, address.at);
    return check_port(address, address, ret_reason);
}

static bool take_scheme(struct span *address, struct span scheme)
{
    if (!span_equal_nocase(span_first(*address, scheme.len), scheme))
        return false;
    *address = span_skip(*address, scheme.len);
    return true;
}

/* Checks what follows a scheme, and gives it the port of the scheme if it has none. */
static bool check_url(struct span *address, bool tls, struct config_arena *arena,
                      struct config_reason *ret_reason)
{
    const char *scheme = tls ? "https" : "http", *port = tls ? "443" : "80";
    if (span_ends(*address, SPAN("/")))
        address->len--;
    int len = config_problem_quote_len(*address);
    if (address->len == 0)
        return config_problem_refuse(ret_reason, "`%s://` has no address; write %s://*:%s", scheme,
                                     scheme, port);
    if (span_starts(*address, UNIX))
        return config_problem_refuse(
            ret_reason, "a Unix socket has no scheme and no TLS; write %.*s", len, address->at);
    if (memchr(address->at, '/', address->len))
        return config_problem_refuse(ret_reason,
                                     "`%s://%.*s` has a path; write only scheme, address and port",
                                     scheme, len, address->at);
    if (lacks_port(*address))
        *address =
            span_text(config_arena_print(arena, "%.*s:%s", (int)address->len, address->at, port));
    return true;
}

/* Two spellings of one address give one text. A port alone is for this machine alone. */
static const char *canonical_text(struct span address, bool tls, struct config_arena *arena)
{
    const struct parts parts = split_address(address);
    unsigned char bytes[sizeof(struct in6_addr)];
    char host[INET6_ADDRSTRLEN];
    uint64_t port = 0;
    CHECK(num_parse_u64(parts.port, &port));
    const char *scheme = tls ? "https://" : "";
    if (!parts.colon)
        return config_arena_print(arena, "%s127.0.0.1:%u", scheme, (unsigned)port);
    if (parts.host.at[0] == '[' &&
        read_address(AF_INET6, span_of(parts.host.at + 1, parts.host.len - 2), bytes) &&
        inet_ntop(AF_INET6, bytes, host, sizeof(host)))
        return config_arena_print(arena, "%s[%s]:%u", scheme, host, (unsigned)port);
    char *text = config_arena_print(arena, "%s%.*s:%u", scheme, (int)parts.host.len, parts.host.at,
                                    (unsigned)port);
    for (char *c = text; *c; c++)
        *c = ascii_lower(*c);
    return text;
}

bool config_address_check(struct span text, struct span folder, struct config_arena *arena,
                          const char **ret_text, struct config_reason *ret_reason)
{
    struct span address = text;
    bool plain = take_scheme(&address, HTTP), tls = !plain && take_scheme(&address, HTTPS);
    if ((plain || tls) && !check_url(&address, tls, arena, ret_reason))
        return false;
    if (memmem(address.at, address.len, "://", 3) && !span_starts(address, UNIX))
        return config_problem_refuse(ret_reason, "`%.*s` begins with neither http:// nor https://",
                                     config_problem_quote_len(address), address.at);
    if (span_starts(address, UNIX) && address.len > UNIX.len && address.at[UNIX.len] != '/')
        address =
            span_text(config_arena_print(arena, "unix:%.*s%.*s", (int)folder.len, folder.at,
                                         (int)(address.len - UNIX.len), address.at + UNIX.len));
    if (!check_plain(address, ret_reason))
        return false;
    *ret_text = span_starts(address, UNIX) ? config_arena_copy(arena, address)
                                           : canonical_text(address, tls, arena);
    return true;
}

/* ---- canonical texts ---- */

static struct span without_scheme(struct span address)
{
    (void)take_scheme(&address, HTTPS);
    return address;
}

unsigned config_address_places(const char *text, struct config_place ret_places[CONFIG_PLACES_MAX])
{
    static const char *const loopback[CONFIG_PLACES_MAX] = { "127.0.0.1", "[::1]" };
    struct span address = without_scheme(span_text(text));
    bool two = span_starts(address, LOCALHOST);
    for (unsigned i = 0; i < 1u + two; i++) {
        struct buf out = buf_over(ret_places[i].address, sizeof(ret_places[i].address) - 1);
        buf_add(&out, two ? span_text(loopback[i]) : SPAN(""));
        buf_add(&out, two ? span_skip(address, LOCALHOST.len) : address);
        CHECK(!out.overflow);
        ret_places[i].address[out.len] = '\0';
        ret_places[i].tls = address.len < strlen(text);
        ret_places[i].optional = two;
    }
    return 1u + two;
}

/* `*` and `[::]` are both families. */
static bool is_all(struct span host)
{
    return span_equal(host, SPAN("*")) || span_equal(host, SPAN("[::]"));
}

static bool is_all_of_v4(struct span host)
{
    return span_equal(host, SPAN("0.0.0.0"));
}

static bool includes(struct span host, struct span other)
{
    return is_all(host) || (is_all_of_v4(host) && !span_starts(other, SPAN("["))) ||
           span_equal(host, other);
}

struct span config_address_port(struct span address)
{
    return span_starts(address, UNIX) ? SPAN("") : split_address(address).port;
}

bool config_address_is_every(struct span address)
{
    const struct span host = span_starts(address, UNIX) ? SPAN("") : split_address(address).host;
    return is_all(host) || is_all_of_v4(host);
}

bool config_address_overlap(struct span a, struct span b)
{
    uint64_t port, other_port;
    if (span_starts(a, UNIX) || span_starts(b, UNIX))
        return false;
    const struct parts one = split_address(a), two = split_address(b);
    return num_parse_u64(one.port, &port) && num_parse_u64(two.port, &other_port) &&
           port == other_port && (includes(one.host, two.host) || includes(two.host, one.host));
}

bool config_address_is_tls(struct span address)
{
    return span_starts(address, HTTPS);
}

bool config_address_is_public(struct span address)
{
    if (span_starts(address, UNIX))
        return false;
    struct span host = split_address(without_scheme(address)).host;
    return !span_starts(host, SPAN("127.")) && !span_equal(host, SPAN("[::1]")) &&
           !span_equal(host, LOCALHOST);
}

bool config_address_is_any_port(struct span address)
{
    uint64_t number;
    return !span_starts(address, UNIX) && num_parse_u64(split_address(address).port, &number) &&
           number == 0;
}

/* ---- networks ---- */

bool config_address_read_network(struct span text, struct rules_network *ret_network)
{
    const char *slash = memchr(text.at, '/', text.len);
    const struct span host = span_first(text, slash ? (size_t)(slash - text.at) : text.len);
    uint64_t bits;
    *ret_network = (struct rules_network){ .text = text };
    if (read_address(AF_INET, host, ret_network->address)) {
        ret_network->family = 4;
        ret_network->bits = 32;
    } else if (read_address(AF_INET6, host, ret_network->address)) {
        ret_network->family = 6;
        ret_network->bits = 128;
    } else {
        return false;
    }
    if (!slash)
        return true;
    if (!num_parse_u64(span_skip(text, host.len + 1), &bits) || bits > ret_network->bits)
        return false;
    ret_network->bits = (uint8_t)bits;
    return true;
}

/* Whether all addresses of the network stand for IPv4 addresses (::ffff:192.0.2.1). A client never
 * has such an address: it counts as its IPv4 address. */
static bool is_mapped(const struct rules_network *network)
{
    static const uint8_t prefix[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    return network->family == 6 && network->bits >= 8 * sizeof(prefix) &&
           memcmp(network->address, prefix, sizeof(prefix)) == 0;
}

static bool refuse_mapped(struct span network, const struct rules_network *read,
                          struct config_reason *ret_reason)
{
    const unsigned bits = read->bits - 96U;
    uint32_t v4 = 0;
    for (unsigned i = 0; i < 4; i++)
        v4 = v4 << 8 | read->address[12 + i];
    v4 &= bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    return config_problem_refuse(ret_reason,
                                 "`%.*s` is a network of IPv4 in the form of IPv6, and matches no "
                                 "client; write %u.%u.%u.%u/%u",
                                 config_problem_quote_len(network), network.at, v4 >> 24,
                                 v4 >> 16 & 0xff, v4 >> 8 & 0xff, v4 & 0xff, bits);
}

bool config_address_check_network(struct span network, struct config_reason *ret_reason)
{
    int len = config_problem_quote_len(network);
    struct rules_network read;
    if (config_address_read_network(network, &read))
        return !is_mapped(&read) || refuse_mapped(network, &read, ret_reason);
    if (read.family == 0)
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a network; write 192.0.2.0/24, 2001:db8::/32 "
                                     "or one address",
                                     len, network.at);
    return config_problem_refuse(ret_reason, "`%.*s` ends without a number of bits from 0 to %d",
                                 len, network.at, read.bits);
}

bool config_address_has_idle_bits(struct span network)
{
    struct rules_network read;
    if (!config_address_read_network(network, &read))
        return false;
    for (size_t i = read.bits; i < 8 * sizeof(read.address); i++)
        if (read.address[i / 8] & (0x80 >> i % 8))
            return true;
    return false;
}

/* ---- names of sites ---- */

enum { NAME_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 }; /* RFC 1035 section 2.3.4, as text */

static bool check_ipv6_host(struct span text, struct config_arena *arena, const char **ret_host,
                            struct config_reason *ret_reason)
{
    char inside[INET6_ADDRSTRLEN];
    struct in6_addr address;
    bool closed = text.len >= 2 && text.at[text.len - 1] == ']';
    if (closed && text.len - 2 < sizeof(inside)) {
        memcpy(inside, text.at + 1, text.len - 2);
        inside[text.len - 2] = 0;
        if (inet_pton(AF_INET6, inside, &address) == 1) {
            char *host = config_arena_copy(arena, text);
            for (char *c = host; *c; c++)
                *c = ascii_lower(*c);
            *ret_host = host;
            return true;
        }
    }
    return config_problem_refuse(ret_reason,
                                 "`%.*s` is not an IPv6 address in brackets, without a port",
                                 config_problem_quote_len(text), text.at);
}

/* Explains texts that are often written in place of a host. */
static bool check_habits(struct span text, struct config_reason *ret_reason)
{
    int len = config_problem_quote_len(text);
    const char *colon = memchr(text.at, ':', text.len);
    const char *slash = memchr(text.at, '/', text.len);
    if (slash)
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is more than a host; write only the name, such "
                                     "as example.org",
                                     len, text.at);
    if (colon)
        return config_problem_refuse(ret_reason,
                                     "`%.*s` has a port; write %.*s, ports are for `listen`", len,
                                     text.at, (int)(colon - text.at), text.at);
    if (span_equal(text, SPAN("*")) || span_equal(text, SPAN("_")))
        return config_problem_refuse(
            ret_reason, "`%.*s` is not a host; a site without `host` answers any", len, text.at);
    if (text.len > 1 && text.at[0] == '.')
        return config_problem_refuse(ret_reason,
                                     "`%.*s` begins with a dot; write %.*s for the name, and "
                                     "*%.*s for any name below",
                                     len, text.at, len - 1, text.at + 1, len, text.at);
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] > 0x7e)
            return config_problem_refuse(
                ret_reason, "`%.*s` is not ASCII; write the form that begins with xn--", len,
                text.at);
    return true;
}

static bool is_host_name(struct span name)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES)
        return false;
    size_t label = 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (c == '.' ? label == 0 : !plain || ++label > LABEL_MAX_BYTES)
            return false;
        if (c == '.')
            label = 0;
    }
    return label > 0;
}

bool config_address_check_host(struct span text, struct config_arena *arena, const char **ret_host,
                               struct config_reason *ret_reason)
{
    if (text.len > 0 && text.at[0] == '[')
        return check_ipv6_host(text, arena, ret_host, ret_reason);
    if (!check_habits(text, ret_reason))
        return false;
    char *host = config_arena_copy(arena, text);
    for (char *c = host; *c; c++)
        *c = ascii_lower(*c);
    struct span name = span_of(host, text.len);
    if (span_ends(name, SPAN("."))) {
        name.len--;
        host[name.len] = 0;
    }
    if (!is_host_name(span_starts(name, SPAN("*.")) ? span_skip(name, 2) : name))
        return config_problem_refuse(ret_reason, "`%.*s` is not the name of a host",
                                     config_problem_quote_len(text), text.at);
    *ret_host = host;
    return true;
}
