/* SPDX-License-Identifier: MIT
 *
 * PROXY headers: the bytes may come in any pieces, and each header keeps to its limit.
 */
#include "base/check.h"
#include "peer/proxy.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum peer_proxy_result parse_copy(const uint8_t *data, size_t len, struct peer_proxy *header)
{
    char *copy = malloc(len + 1);
    CHECK(copy);
    if (len > 0)
        memcpy(copy, data, len);
    const enum peer_proxy_result result = peer_proxy_parse(span_of(copy, len), header);
    free(copy);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer_proxy whole, part;
    const enum peer_proxy_result result = parse_copy(data, size, &whole);
    const size_t most = size < PEER_PROXY_MAX ? size : PEER_PROXY_MAX;
    CHECK(result != PEER_PROXY_MORE || size < PEER_PROXY_MAX);
    for (size_t len = 0; len <= most; len++) {
        const enum peer_proxy_result now = parse_copy(data, len, &part);
        if (now == PEER_PROXY_MORE)
            continue;
        CHECK(now == result);
        if (now == PEER_PROXY_DONE)
            CHECK(part.len == len && whole.len == len && len <= PEER_PROXY_MAX);
        break;
    }
    struct peer_network network;
    if (peer_network_parse(span_of((const char *)data, size), &network))
        CHECK(network.bits <= (network.address.family == 4 ? 32 : 128));
    return 0;
}
