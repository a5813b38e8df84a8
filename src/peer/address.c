/* SPDX-License-Identifier: MIT */
#include "peer/address.h"

#include "base/num.h"

enum { V4_BYTES = 4, GROUP_BYTES = 2, NO_GAP = -1 };

/* ---- addresses ---- */

static bool parse_octet(struct span text, uint8_t *ret_octet)
{
    uint64_t value;
    const bool padded = text.len > 1 && text.at[0] == '0'; /* some programs read it as octal */
    if (text.len > 3 || padded || !num_parse_u64(text, &value) || value > UINT8_MAX)
        return false;
    *ret_octet = (uint8_t)value;
    return true;
}

/* The part of `text` before the first `separator`, or all of it. */
static struct span before(struct span text, char separator)
{
    const char *at = text.len > 0 ? memchr(text.at, separator, text.len) : NULL;
    return at ? span_of(text.at, (size_t)(at - text.at)) : text;
}

static bool parse_v4(struct span text, uint8_t bytes[V4_BYTES])
{
    for (unsigned i = 0; i < V4_BYTES; i++) {
        const struct span octet = before(text, '.');
        const bool is_last = octet.len == text.len;
        if (is_last != (i == V4_BYTES - 1) || !parse_octet(octet, &bytes[i]))
            return false;
        text = span_skip(text, is_last ? octet.len : octet.len + 1);
    }
    return true;
}

static bool parse_group(struct span text, uint8_t bytes[GROUP_BYTES])
{
    uint64_t value;
    if (text.len > 4 || !num_parse_hex(text, &value))
        return false;
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)(value & UINT8_MAX);
    return true;
}

/* An address under way: the bytes so far, and where `::` stands among them. */
struct v6 {
    uint8_t bytes[PEER_ADDRESS_BYTES];
    int len;
    int gap;
};

/* Reads the groups, and the IPv4 address that may stand for the last two. */
static bool parse_groups(struct span text, struct v6 *v6)
{
    while (text.len > 0) {
        const struct span group = before(text, ':');
        const bool is_last = group.len == text.len;
        const int left = PEER_ADDRESS_BYTES - v6->len;
        if (is_last && left >= V4_BYTES && parse_v4(group, &v6->bytes[v6->len])) {
            v6->len += V4_BYTES;
            return true;
        }
        if (left == 0 || !parse_group(group, &v6->bytes[v6->len]))
            return false;
        v6->len += GROUP_BYTES;
        if (is_last)
            return true;
        text = span_skip(text, group.len + 1);
        const bool is_gap = span_starts(text, SPAN(":"));
        if ((is_gap && v6->gap != NO_GAP) || text.len == 0)
            return false;
        if (is_gap) {
            v6->gap = v6->len;
            text = span_skip(text, 1);
        }
    }
    return true;
}

static bool parse_v6(struct span text, uint8_t bytes[PEER_ADDRESS_BYTES])
{
    struct v6 v6 = { .gap = NO_GAP };
    if (span_starts(text, SPAN("::"))) {
        v6.gap = 0;
        text = span_skip(text, 2);
    }
    if (!parse_groups(text, &v6))
        return false;
    if (v6.gap == NO_GAP && v6.len != PEER_ADDRESS_BYTES)
        return false;
    if (v6.gap != NO_GAP && v6.len > PEER_ADDRESS_BYTES - GROUP_BYTES)
        return false; /* `::` stands for one group at least */
    const size_t front = v6.gap == NO_GAP ? (size_t)v6.len : (size_t)v6.gap;
    const size_t back = (size_t)v6.len - front;
    memset(bytes, 0, PEER_ADDRESS_BYTES);
    memcpy(bytes, v6.bytes, front);
    memcpy(bytes + PEER_ADDRESS_BYTES - back, v6.bytes + front, back);
    return true;
}

bool peer_address_parse(struct span text, struct peer_address *ret_address)
{
    struct peer_address address = { 0 };
    if (parse_v4(text, address.bytes)) {
        address.family = 4;
    } else {
        if (!parse_v6(text, address.bytes))
            return false;
        address.family = 6;
    }
    *ret_address = address;
    return true;
}

void peer_address_unmap(struct peer_address *address)
{
    static const uint8_t mapped[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    if (address->family != 6 || memcmp(address->bytes, mapped, sizeof(mapped)) != 0)
        return;
    struct peer_address v4 = { .family = 4 };
    memcpy(v4.bytes, address->bytes + sizeof(mapped), V4_BYTES);
    *address = v4;
}

/* ---- networks ---- */

bool peer_network_parse(struct span text, struct peer_network *ret_network)
{
    const struct span address = before(text, '/');
    struct peer_network network = { 0 };
    if (!peer_address_parse(address, &network.address))
        return false;
    const uint64_t most = network.address.family == 4 ? 32 : 128;
    uint64_t bits = most;
    if (address.len < text.len &&
        (!num_parse_u64(span_skip(text, address.len + 1), &bits) || bits > most))
        return false;
    network.bits = (uint8_t)bits;
    *ret_network = network;
    return true;
}

static bool is_in_network(const struct peer_network *network, uint8_t family, const uint8_t *bytes)
{
    const unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (network->address.family != family || memcmp(network->address.bytes, bytes, whole) != 0)
        return false;
    const unsigned mask = 0xff00u >> rest & 0xff;
    return rest == 0 || ((network->address.bytes[whole] ^ bytes[whole]) & mask) == 0;
}

bool peer_networks_have(const struct peer_networks *networks, uint8_t family,
                        const uint8_t bytes[PEER_ADDRESS_BYTES])
{
    if (family == 0)
        return networks->local;
    for (size_t i = 0; i < networks->count; i++)
        if (is_in_network(&networks->each[i], family, bytes))
            return true;
    return false;
}
