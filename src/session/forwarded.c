/* SPDX-License-Identifier: MIT */
#include "session/forwarded.h"

#include "peer/forwarded.h"
#include "session/answer.h"
#include "session/limits.h"

/* Lines of the field that are read, the last ones. A proxy that appends a line for each hop makes
 * as many lines as elements. */
enum { LINES_MAX = PEER_FORWARDED_ELEMENTS_MAX };

bool session_forwarded_trusts(const struct session_shared *shared, const struct session_peer *peer)
{
    const struct session_forwarding *forwarding = shared->forwarding;
    return __builtin_expect(forwarding != NULL, 0) &&
           peer_networks_have(&forwarding->trusted, peer->family, peer->address);
}

static void read_fields(const struct session_exchange *x, struct peer_forwarded *forwarded)
{
    const struct span wanted = forwarded->form == PEER_FORWARDED ? SPAN("forwarded")
                                                                 : SPAN("x-forwarded-for");
    struct span lines[LINES_MAX], name, value;
    size_t count = 0, cursor = 0;
    while (http_request_next_line(x->request, x->head, &cursor, &name, &value))
        if (span_equal_nocase(name, wanted))
            lines[count++ % LINES_MAX] = value;
    for (size_t i = count; i > 0 && count - i < LINES_MAX; i--)
        if (!peer_forwarded_read(forwarded, lines[(i - 1) % LINES_MAX]))
            return;
}

void session_forwarded_find(struct session_exchange *x, struct session_peer *client)
{
    const struct session_shared *shared = x->thread->shared;
    struct peer_forwarded forwarded = {
        .form = shared->forwarding->standard ? PEER_FORWARDED : PEER_X_FORWARDED_FOR,
        .trusted = &shared->forwarding->trusted,
    };
    read_fields(x, &forwarded);
    *client = x->session->peer;
    if (forwarded.result == PEER_FORWARDED_CLIENT) {
        client->family = forwarded.client.family;
        memcpy(client->address, forwarded.client.bytes, sizeof(client->address));
        stats_writer_add(&x->thread->stats, STATS_requests_forwarded, !x->resumed);
    } else if (forwarded.result == PEER_FORWARDED_MALFORMED) {
        stats_writer_add(&x->thread->stats, STATS_forwarded_malformed, !x->resumed);
    }
    client->limited = shared->limits && session_limits_locate(shared->limits, client);
    x->client = client;
}
