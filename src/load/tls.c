/* SPDX-License-Identifier: MIT */
#include "load/tls.h"

#include "load/connection.h"
#include "load/socket.h"
#include "load/thread.h"
#include "os/clock.h"
#include "tls/client.h"

#include <errno.h>
#include <stdlib.h>

enum { SEND_PIECES = 8 };

/* ---- tickets ---- */

static SSL_SESSION **ticket_of(struct load_tls *tls, uint32_t origin)
{
    unsigned at = origin % LOAD_TLS_TICKETS;
    if (tls->origin[at] != origin)
        tls_client_forget(&tls->ticket[at]);
    tls->origin[at] = origin;
    return &tls->ticket[at];
}

void load_tls_free(struct load_tls *tls)
{
    for (unsigned i = 0; tls && i < LOAD_TLS_TICKETS; i++)
        tls_client_forget(&tls->ticket[i]);
    free(tls);
}

/* ---- the handshake ---- */

void load_tls_begin(struct load_thread *thread, struct load_user *user)
{
    const struct load_plan *plan = thread->plan;
    if (!user->tls)
        user->tls = calloc(1, sizeof(*user->tls));
    struct load_tls *tls = user->tls;
    SSL_SESSION **ticket = tls && plan->tls == LOAD_TLS_RESUME ? ticket_of(tls, user->origin)
                                                               : NULL;
    SSL *ssl = tls ? tls_client_connect(plan->client, plan->targets[user->origin].name, ticket)
                   : NULL;
    if (!ssl || !tls_connection_open(&tls->connection, ssl, &thread->chunks)) {
        load_connection_fail(thread, user, LOAD_no_descriptor);
        return;
    }
    tls->from_ns = thread->now_ns;
    tls->offered = ticket && *ticket;
    user->connection = LOAD_CONNECTION_SECURING;
    (void)load_tls_continue(thread, user);
}

static void count_handshake(struct load_thread *thread, struct load_user *user)
{
    struct load_tls *tls = user->tls;
    struct load_outcome *outcome = &thread->tally.portion->outcome;
    struct tls_agreement agreed = tls_connection_agreed(&tls->connection);
    uint64_t took_ns = thread->now_ns - tls->from_ns;
    outcome->handshakes_full += !agreed.resumed;
    outcome->handshakes_resumed += agreed.resumed;
    outcome->tickets_refused += tls->offered && !agreed.resumed;
    load_durations_add(&outcome->handshake, took_ns);
    load_connection_count_ready(thread, user);
    tls->agreed = load_result_agreed(thread->agreed, agreed.protocol, agreed.cipher, agreed.group);
}

static enum load_error handshake_error(const struct tls_connection *c)
{
    if (c->memory_failed)
        return LOAD_no_descriptor;
    return tls_client_distrusts(c->error) ? LOAD_tls_certificate : LOAD_tls_handshake;
}

enum load_tls_step load_tls_continue(struct load_thread *thread, struct load_user *user)
{
    struct tls_connection *c = &user->tls->connection;
    switch (tls_connection_handshake(c)) {
    case TLS_DONE:
        if (thread->plan->http2 && !tls_connection_is_http2(c)) {
            load_connection_fail(thread, user, LOAD_tls_no_http2);
            return LOAD_TLS_LOST;
        }
        user->connection = LOAD_CONNECTION_OPEN;
        load_thread_read_clock(thread); /* the computation is part of the handshake */
        count_handshake(thread, user);
        return LOAD_TLS_READY;
    case TLS_MORE:
        /* Also true while the rest waits for EPOLLOUT. */
        return load_tls_flush(thread, user) || user->connection == LOAD_CONNECTION_SECURING
                   ? LOAD_TLS_MORE
                   : LOAD_TLS_LOST;
    case TLS_ENDED:
        load_connection_fail(thread, user, LOAD_tls_closed);
        return LOAD_TLS_LOST;
    case TLS_FAILED:
        break;
    }
    load_connection_fail(thread, user, handshake_error(c));
    return LOAD_TLS_LOST;
}

/* ---- output ---- */

size_t load_tls_seal(struct load_thread *thread, struct load_user *user, struct span bytes)
{
    struct tls_connection *c = &user->tls->connection;
    struct span part = span_first(bytes, TLS_RECORD_BYTES);
    if (tls_connection_write(c, part) == TLS_DONE)
        return part.len;
    load_connection_fail(thread, user, c->memory_failed ? LOAD_no_descriptor : LOAD_tls_broken);
    return 0;
}

static ssize_t send_wire(struct load_user *user)
{
    struct tls_connection *c = &user->tls->connection;
    struct span spans[SEND_PIECES];
    struct iovec pieces[SEND_PIECES];
    unsigned count = tls_wire_pieces(&c->wire, spans, SEND_PIECES);
    for (unsigned i = 0; i < count; i++) /* sendmsg does not write through the pointer */
        pieces[i] = (struct iovec){ (void *)(uintptr_t)spans[i].at, spans[i].len };
    return load_socket_send(user->fd, pieces, count);
}

bool load_tls_flush(struct load_thread *thread, struct load_user *user)
{
    struct tls_connection *c = &user->tls->connection;
    while (!tls_wire_is_empty(&c->wire)) {
        ssize_t sent = send_wire(user);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            load_connection_lost(thread, user, -errno);
        if (sent < 0)
            return false;
        tls_wire_sent(&c->wire, c->chunks, (size_t)sent);
    }
    return true;
}

/* ---- the end ---- */

void load_tls_fail(struct load_thread *thread, struct load_user *user)
{
    enum load_error error = user->tls->connection.memory_failed ? LOAD_no_descriptor
                                                                : LOAD_tls_broken;
    if (user->asked_count > 0) {
        load_connection_fail(thread, user, error);
        return;
    }
    load_tally_error(&thread->tally, error); /* it belongs to no request */
    load_connection_close(user);
}

void load_tls_close(struct load_user *user)
{
    struct tls_connection *c = &user->tls->connection;
    /* Also without a send: OpenSSL resumes no session of a connection that has no close_notify. */
    if (c->error == 0)
        tls_connection_end(c);
    /* After the server's own close_notify, more bytes would cause a reset. */
    if (!tls_client_ended(c->ssl) && !tls_wire_is_empty(&c->wire))
        (void)send_wire(user);
    tls_connection_close(c);
}
