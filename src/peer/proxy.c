/* SPDX-License-Identifier: MIT
 *
 * Both versions are read from the start each time. A header of version 1 has at most 107 bytes, and
 * that of version 2 says its length in the first 16. So pieces of one byte cost little.
 */
#include "peer/proxy.h"

#include "base/num.h"

static const struct span line_start = { "PROXY ", 6 };
static const struct span signature = { "\r\n\r\n\0\r\nQUIT\n", 12 };

/* Whether all bytes that have arrived agree with `start`. */
static bool agrees(struct span bytes, struct span start)
{
    const struct span front = span_first(bytes, start.len);
    return span_starts(start, front);
}

/* ---- version 1: a line of text (section 2.1) ---- */

/* Takes the word up to the next space, and the space. The last word has none behind it. */
static bool take_word(struct span *rest, bool last, struct span *ret_word)
{
    const char *space = rest->len > 0 ? memchr(rest->at, ' ', rest->len) : NULL;
    if (last != (space == NULL))
        return false;
    *ret_word = span_first(*rest, space ? (size_t)(space - rest->at) : rest->len);
    *rest = span_skip(*rest, ret_word->len + (space ? 1 : 0));
    return true;
}

static bool is_port(struct span text)
{
    uint64_t port;
    const bool padded = text.len > 1 && text.at[0] == '0';
    return text.len <= 5 && !padded && num_parse_u64(text, &port) && port <= UINT16_MAX;
}

/* SOURCE DESTINATION PORT PORT, with one space between two words. */
static bool parse_endpoints(struct span rest, uint8_t family, struct peer_address *ret_client)
{
    struct span source, destination, from, to;
    struct peer_address server;
    return take_word(&rest, false, &source) && take_word(&rest, false, &destination) &&
           take_word(&rest, false, &from) && take_word(&rest, true, &to) &&
           peer_address_parse(source, ret_client) && peer_address_parse(destination, &server) &&
           ret_client->family == family && server.family == family && is_port(from) && is_port(to);
}

/* `line` is what stands between "PROXY " and CRLF. */
static bool parse_line(struct span line, struct peer_address *ret_client)
{
    static const struct span tcp4 = { "TCP4 ", 5 }, tcp6 = { "TCP6 ", 5 };
    *ret_client = (struct peer_address){ 0 };
    if (span_starts(line, tcp4))
        return parse_endpoints(span_skip(line, tcp4.len), 4, ret_client);
    if (span_starts(line, tcp6))
        return parse_endpoints(span_skip(line, tcp6.len), 6, ret_client);
    /* The text behind UNKNOWN has no meaning. */
    return span_equal(line, SPAN("UNKNOWN")) || span_starts(line, SPAN("UNKNOWN "));
}

static enum peer_proxy_result parse_version_1(struct span bytes, struct peer_proxy *ret_header)
{
    const struct span window = span_first(bytes, PEER_PROXY_LINE_MAX);
    const char *end = memchr(window.at, '\n', window.len);
    if (!end)
        return window.len < PEER_PROXY_LINE_MAX ? PEER_PROXY_MORE : PEER_PROXY_BROKEN;
    const size_t len = (size_t)(end - window.at);
    if (len < line_start.len + 1 || window.at[len - 1] != '\r')
        return PEER_PROXY_BROKEN;
    const struct span line =
        span_first(span_skip(window, line_start.len), len - 1 - line_start.len);
    struct peer_proxy header = { .len = len + 1 };
    if (!parse_line(line, &header.client))
        return PEER_PROXY_BROKEN;
    *ret_header = header;
    return PEER_PROXY_DONE;
}

/* ---- version 2: bytes (section 2.2) ---- */

enum {
    COMMAND_AT = 12, /* the version in the upper half, the command in the lower one */
    FAMILY_AT = 13,  /* the family in the upper half, the kind of socket in the lower one */
    LENGTH_AT = 14,  /* two bytes: the bytes behind them */
    ADDRESSES_AT = 16,
    LOCAL = 0x20,
    PROXY = 0x21,
    FAMILY_MAX = 3, /* Unix sockets */
    SOCKET_MAX = 2  /* datagrams */
};

/* Bytes of the addresses and ports, by family: none, IPv4, IPv6, Unix sockets. */
static const uint8_t block_len[FAMILY_MAX + 1] = { 0, 12, 36, 216 };

static unsigned byte_at(struct span bytes, size_t at)
{
    return (unsigned char)bytes.at[at];
}

static bool is_known_family(unsigned family)
{
    return family >> 4 <= FAMILY_MAX && (family & 15) <= SOCKET_MAX;
}

/* The client of a complete header. Only streams over IP have an address here. */
static struct peer_address client_of(struct span bytes)
{
    enum { STREAM_OVER_IPV4 = 0x11, STREAM_OVER_IPV6 = 0x21 };
    struct peer_address client = { 0 };
    const unsigned family = byte_at(bytes, FAMILY_AT);
    if (byte_at(bytes, COMMAND_AT) != PROXY)
        return client;
    if (family == STREAM_OVER_IPV4)
        client.family = 4;
    else if (family == STREAM_OVER_IPV6)
        client.family = 6;
    memcpy(client.bytes, bytes.at + ADDRESSES_AT,
           client.family == 6   ? 16
           : client.family == 4 ? 4
                                : 0);
    return client;
}

/* Each byte is judged as soon as it is there, so that pieces give the same result. */
static enum peer_proxy_result parse_version_2(struct span bytes, struct peer_proxy *ret_header)
{
    if (bytes.len <= COMMAND_AT)
        return PEER_PROXY_MORE;
    const unsigned command = byte_at(bytes, COMMAND_AT);
    if (command != LOCAL && command != PROXY)
        return PEER_PROXY_BROKEN;
    if (bytes.len <= FAMILY_AT)
        return PEER_PROXY_MORE;
    const unsigned family = byte_at(bytes, FAMILY_AT);
    if (command == PROXY && !is_known_family(family))
        return PEER_PROXY_BROKEN;
    if (bytes.len < ADDRESSES_AT)
        return PEER_PROXY_MORE;
    const size_t rest = byte_at(bytes, LENGTH_AT) << 8 | byte_at(bytes, LENGTH_AT + 1);
    if (rest > PEER_PROXY_MAX - ADDRESSES_AT || (command == PROXY && rest < block_len[family >> 4]))
        return PEER_PROXY_BROKEN;
    if (bytes.len < ADDRESSES_AT + rest)
        return PEER_PROXY_MORE;
    *ret_header = (struct peer_proxy){ .len = ADDRESSES_AT + rest, .client = client_of(bytes) };
    return PEER_PROXY_DONE;
}

/* ---- both ---- */

enum peer_proxy_result peer_proxy_parse(struct span bytes, struct peer_proxy *ret_header)
{
    const bool is_line = agrees(bytes, line_start);
    if (!is_line && !agrees(bytes, signature))
        return PEER_PROXY_ABSENT;
    if (bytes.len < (is_line ? line_start.len : signature.len))
        return PEER_PROXY_MORE;
    const enum peer_proxy_result result = is_line ? parse_version_1(bytes, ret_header)
                                                  : parse_version_2(bytes, ret_header);
    if (result == PEER_PROXY_DONE)
        peer_address_unmap(&ret_header->client);
    return result;
}

bool peer_proxy_begins(struct span bytes)
{
    enum { UP_TO_THE_NUL = 5 }; /* no text has these bytes */
    return span_starts(bytes, line_start) ||
           span_starts(bytes, span_first(signature, UP_TO_THE_NUL));
}
