/* SPDX-License-Identifier: MIT */
#include "config/host.h"

#include <arpa/inet.h>

enum { NAME_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 }; /* RFC 1035 section 2.3.4, as text */

static bool check_ipv6(struct span text, struct config_arena *arena, const char **ret_host,
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
    return config_refuse(ret_reason, "`%.*s` is not an IPv6 address in brackets, without a port",
                         config_quote_len(text), text.at);
}

/* What people write in place of a host. */
static bool refuse_known(struct span text, struct config_reason *ret_reason)
{
    int len = config_quote_len(text);
    const char *colon = memchr(text.at, ':', text.len);
    const char *slash = memchr(text.at, '/', text.len);
    if (slash)
        return config_refuse(ret_reason,
                             "`%.*s` is more than a host; write the name alone, such "
                             "as example.org",
                             len, text.at);
    if (colon)
        return config_refuse(ret_reason, "`%.*s` has a port; write %.*s, ports are for `listen`",
                             len, text.at, (int)(colon - text.at), text.at);
    if (span_equal(text, SPAN("*")))
        return config_refuse(ret_reason, "`*` is not a host; a site without `host` answers any");
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] > 0x7e)
            return config_refuse(ret_reason,
                                 "`%.*s` is not ASCII; write the form that begins with xn--", len,
                                 text.at);
    return true;
}

static bool is_name(struct span name)
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

bool config_host_check(struct span text, struct config_arena *arena, const char **ret_host,
                       struct config_reason *ret_reason)
{
    if (text.len > 0 && text.at[0] == '[')
        return check_ipv6(text, arena, ret_host, ret_reason);
    if (!refuse_known(text, ret_reason))
        return false;
    char *host = config_arena_copy(arena, text);
    for (char *c = host; *c; c++)
        *c = ascii_lower(*c);
    struct span name = span_of(host, text.len);
    if (span_ends(name, SPAN("."))) {
        name.len--;
        host[name.len] = 0;
    }
    if (!is_name(span_starts(name, SPAN("*.")) ? span_skip(name, 2) : name))
        return config_refuse(ret_reason, "`%.*s` is not the name of a host", config_quote_len(text),
                             text.at);
    *ret_host = host;
    return true;
}
