/* SPDX-License-Identifier: MIT */
#include "server/networks.h"

#include <errno.h>
#include <stdlib.h>

int server_networks_open(struct peer_networks *networks, const char *const *texts)
{
    *networks = (struct peer_networks){ 0 };
    size_t count = 0;
    while (texts[count])
        count++;
    struct peer_network *each = calloc(count + 1, sizeof(*each));
    if (!each)
        return -ENOMEM;
    networks->each = each;
    for (size_t i = 0; i < count; i++) {
        const struct span text = span_text(texts[i]);
        if (span_equal(text, SPAN("unix")))
            networks->local = true;
        else
            CHECK(peer_network_parse(text, &each[networks->count++]));
    }
    return 0;
}

void server_networks_close(struct peer_networks *networks)
{
    free((void *)(uintptr_t)networks->each);
    *networks = (struct peer_networks){ 0 };
}
