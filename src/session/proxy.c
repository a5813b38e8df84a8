/* SPDX-License-Identifier: MIT
 *
 * A header mostly arrives in one piece, and is read in place. Otherwise its pieces are kept in the
 * session's input. The connection counts as idle meanwhile: it may be closed to make space.
 */
#include "session/proxy.h"

#include "peer/proxy.h"
#include "session/forwarded.h"
#include "session/http1.h"
#include "session/limits.h"
#include "session/tally.h"
#include "session/tls.h"

bool session_proxy_expects(const struct session_shared *shared, const struct session_peer *peer)
{
    return __builtin_expect(shared->proxies != NULL, 0) &&
           peer_networks_have(shared->proxies, peer->family, peer->address);
}

enum http_fault session_proxy_fault(struct span bytes, enum http_fault fault)
{
    return peer_proxy_begins(bytes) ? HTTP_FAULT_PROXY_UNEXPECTED : fault;
}

/* ---- counting the address ---- */

bool session_proxy_admit(const struct session_shared *shared, struct session_peer *peer,
                         uint64_t now_ns)
{
    return __builtin_expect(!shared->limits, 1) || session_forwarded_trusts(shared, peer) ||
           session_limits_admit(shared->limits, peer, now_ns);
}

/* Where each connection has a process, the parent cannot know the address from the header, nor
 * whether it is still counted. It releases what `counted` says when the child has ended. A crash
 * between the two steps here, or below, leaves the address counted: the other order could make its
 * count negative. */
static bool admit_client(struct session *s, uint64_t now_ns)
{
    struct session_thread *thread = s->thread;
    if (!session_proxy_admit(thread->shared, &s->peer, now_ns)) {
        stats_writer_add(&thread->stats, STATS_connections_limited, 1);
        return false;
    }
    if (thread->counted)
        atomic_store(thread->counted, session_peer_pack(&s->peer));
    return true;
}

void session_proxy_release(struct session *s)
{
    struct session_thread *thread = s->thread;
    if (thread->counted)
        atomic_store(thread->counted, 0);
    session_limits_release(thread->shared->limits, &s->peer);
    s->peer.limited = false;
}

/* ---- the header ---- */

/* A client of HTTP reads why. A client that begins with TLS could not. */
static unsigned refuse_beginning(struct session *s, char first, bool broken, uint64_t now_ns)
{
    const enum http_fault fault = broken ? HTTP_FAULT_PROXY_FORM : HTTP_FAULT_PROXY_MISSING;
    const struct span text =
        broken ? SPAN("The PROXY header of this connection is malformed.\n")
               : SPAN("Connections from your address must begin with a PROXY header.\n");
    s->proxied = false;
    session_http1_drop(s);
    if (!s->tls_wanted || tls_connection_is_plain(first)) {
        s->tls_wanted = false;
        return session_http1_refuse(s, fault, text, now_ns);
    }
    session_tally_fault(s->thread, fault);
    s->closing = true;
    return SESSION_CLOSE;
}

/* The header is complete, and `rest` has arrived behind it. */
static unsigned begin_proxied(struct session *s, const struct peer_address *client,
                              struct span rest, uint64_t now_ns)
{
    s->proxied = false;
    session_http1_drop(s); /* the pieces of the header */
    if (client->family != 0) {
        s->peer = (struct session_peer){ .family = client->family };
        memcpy(s->peer.address, client->bytes, sizeof(s->peer.address));
    }
    s->forwards = session_forwarded_trusts(s->thread->shared, &s->peer);
    if (!admit_client(s, now_ns)) {
        s->closing = true;
        return SESSION_CLOSE;
    }
    stats_writer_add(&s->thread->stats, STATS_connections_proxied, 1);
    session_http1_begin(s, now_ns);
    if (rest.len == 0)
        return SESSION_READ;
    return s->tls_wanted ? session_tls_feed(s, rest, now_ns) : session_http1_feed(s, rest, now_ns);
}

/* Keeps a piece of the header. False: out of memory. */
static bool keep_piece(struct session *s, struct span piece, uint64_t now_ns)
{
    const struct http_request none = { 0 };
    const struct session_arrival arrival = { now_ns, now_ns };
    return s->input ? session_input_add(&s->input, piece)
                    : session_input_begin(&s->input, piece, &none, arrival);
}

unsigned session_proxy_feed(struct session *s, struct span in, uint64_t now_ns)
{
    const size_t kept = s->input ? s->input->len : 0;
    struct span bytes = in;
    if (in.len == 0)
        return session_http1_feed(s, in, now_ns);
    if (kept > 0) {
        if (!keep_piece(s, in, now_ns))
            return SESSION_CLOSE;
        bytes = span_of(s->input->bytes + s->input->at, s->input->len);
    }
    struct peer_proxy header;
    const enum peer_proxy_result result = peer_proxy_parse(bytes, &header);
    switch (result) {
    case PEER_PROXY_DONE:
        return begin_proxied(s, &header.client, span_skip(in, header.len - kept), now_ns);
    case PEER_PROXY_MORE:
        return kept > 0 || keep_piece(s, in, now_ns) ? SESSION_READ : SESSION_CLOSE;
    case PEER_PROXY_ABSENT:
    case PEER_PROXY_BROKEN:
        break;
    }
    return refuse_beginning(s, bytes.at[0], result == PEER_PROXY_BROKEN, now_ns);
}
