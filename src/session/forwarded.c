/* SPDX-License-Identifier: MIT */
#include "session/forwarded.h"

#include "peer/forwarded.h"
#include "session/answer.h"
#include "session/limits.h"
#include "session/trace.h"

/* Lines of the field that are read, the last ones. A proxy that appends a line for each hop makes
 * as many lines as elements. */
enum { LINES_MAX = PEER_FORWARDED_ELEMENTS_MAX };

bool session_forwarded_trusts(const struct session_shared *shared, const struct session_peer *peer)
{
    const struct session_forwarding *forwarding = shared->forwarding;
    return __builtin_expect(forwarding != NULL, 0) &&
           peer_networks_have(&forwarding->trusted, peer->family, peer->address);
}

/* The last lines of one field. */
struct lines {
    struct span last[LINES_MAX];
    size_t count; /* of all lines */
};

static void keep_line(struct lines *lines, struct span value)
{
    lines->last[lines->count++ % LINES_MAX] = value;
}

static void read_lines(const struct lines *lines, struct peer_forwarded *forwarded,
                       bool (*read_line)(struct peer_forwarded *, struct span))
{
    for (size_t i = lines->count; i > 0 && lines->count - i < LINES_MAX; i--)
        if (!read_line(forwarded, lines->last[(i - 1) % LINES_MAX]))
            return;
}

static void read_fields(const struct session_exchange *x, struct peer_forwarded *forwarded)
{
    const bool standard = forwarded->form == PEER_FORWARDED;
    const struct span wanted = standard ? SPAN("forwarded") : SPAN("x-forwarded-for");
    struct lines clients, schemes;
    struct span name, value;
    size_t cursor = 0;
    clients.count = schemes.count = 0;
    while (http_request_next_line(x->request, x->head, &cursor, &name, &value)) {
        if (span_equal_nocase(name, wanted))
            keep_line(&clients, value);
        else if (!standard && span_equal_nocase(name, SPAN("x-forwarded-proto")))
            keep_line(&schemes, value);
    }
    read_lines(&clients, forwarded, peer_forwarded_read);
    read_lines(&schemes, forwarded, peer_forwarded_read_scheme);
}

/* Without a scheme of the proxy, that of its connection counts. */
static void use_scheme(struct session_exchange *x, enum peer_forwarded_scheme scheme)
{
    if (scheme == PEER_FORWARDED_NO_SCHEME)
        return;
    x->secure = scheme == PEER_FORWARDED_HTTPS;
    x->scheme_named = true;
    session_trace_note(x, scheme_named, true);
    session_trace_note(x, secure, x->secure);
}

void session_forwarded_find(struct session_exchange *x, struct session_peer *client)
{
    const struct session_shared *shared = x->thread->shared;
    struct peer_forwarded forwarded = {
        .form = shared->forwarding->standard ? PEER_FORWARDED : PEER_X_FORWARDED_FOR,
        .trusted = &shared->forwarding->trusted,
    };
    read_fields(x, &forwarded);
    use_scheme(x, forwarded.scheme);
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
