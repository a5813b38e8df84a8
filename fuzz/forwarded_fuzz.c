/* SPDX-License-Identifier: MIT
 *
 * Forwarded, X-Forwarded-For and X-Forwarded-Proto: whatever a client has written, the element that
 * a proxy appends names the client and its scheme.
 */
#include "base/check.h"
#include "peer/forwarded.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct peer_forwarded read_copy(struct peer_forwarded forwarded, struct span first,
                                       struct span second,
                                       bool (*read_line)(struct peer_forwarded *, struct span))
{
    const size_t len = first.len + second.len;
    char *copy = malloc(len + 1);
    CHECK(copy);
    if (first.len > 0)
        memcpy(copy, first.at, first.len);
    if (second.len > 0)
        memcpy(copy + first.len, second.at, second.len);
    (void)read_line(&forwarded, span_of(copy, len));
    free(copy);
    return forwarded;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t client[] = { 192, 0, 2, 1 };
    static const struct span appended[] = {
        [PEER_X_FORWARDED_FOR] = { ", 192.0.2.1, 10.0.0.1", 21 },
        [PEER_FORWARDED] = { ", for=192.0.2.1;proto=https, for=\"10.0.0.1:80\"", 46 },
    };
    const struct span none = { NULL, 0 }, line = { (const char *)data, size };
    struct peer_network network;
    CHECK(peer_network_parse(SPAN("10.0.0.0/8"), &network));
    const struct peer_networks trusted = { &network, 1, false };
    for (unsigned form = PEER_X_FORWARDED_FOR; form <= PEER_FORWARDED; form++) {
        const struct peer_forwarded new = { .form = (enum peer_forwarded_form)form,
                                            .trusted = &trusted };
        (void)read_copy(new, line, none, peer_forwarded_read);
        struct peer_forwarded got = read_copy(new, line, appended[form], peer_forwarded_read);
        CHECK(got.result == PEER_FORWARDED_CLIENT && got.client.family == 4);
        CHECK(memcmp(got.client.bytes, client, sizeof(client)) == 0);
        if (form == PEER_X_FORWARDED_FOR)
            got = read_copy(got, line, SPAN(", https, http"), peer_forwarded_read_scheme);
        CHECK(got.scheme == PEER_FORWARDED_HTTPS);
    }
    return 0;
}
