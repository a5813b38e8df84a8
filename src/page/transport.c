/* SPDX-License-Identifier: MIT */
#include "page/transport.h"

#include "os/file.h"
#include "tls/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    INPUT_BYTES = 4096,               /* encrypted bytes, received at a time */
    SEAL_BYTES = 4 * TLS_RECORD_BYTES /* plain bytes, sealed at a time */
};

/* A connection with TLS. */
struct page_records {
    struct tls_connection connection;
    bool established; /* the handshake is complete */
    bool over;        /* the client has sent close_notify */
    bool failed;      /* the client broke the protocol */
    bool reported;    /* the caller knows that */
    bool ended;       /* close_notify is in the output */
    size_t at, len;   /* encrypted bytes that wait: in[at .. len) */
    char in[INPUT_BYTES];
};

void page_transport_open(struct page_transport *t, int fd, struct page_tls *tls)
{
    *t = (struct page_transport){ .fd = fd, .tls = tls };
}

static void drop_records(struct page_transport *t)
{
    if (t->records)
        tls_connection_close(&t->records->connection);
    free(t->records);
    t->records = NULL;
}

/* Appends close_notify, once. */
static void add_close_notify(struct page_transport *t)
{
    struct page_records *r = t->records;
    if (!r || !r->established || r->failed || r->ended)
        return;
    r->ended = true;
    tls_connection_end(&r->connection);
    (void)page_transport_flush(t); /* an error means that the client is gone */
}

void page_transport_close(struct page_transport *t)
{
    add_close_notify(t);
    drop_records(t);
    os_file_close(t->fd);
    t->fd = -1;
}

void page_transport_end(struct page_transport *t)
{
    add_close_notify(t);
    (void)shutdown(t->fd, SHUT_WR); /* an error means that the client is gone */
}

/* ---- the socket ---- */

/* -errno of a call that failed. Memory of the kernel that is short now is a reason to wait. */
static int socket_error(void)
{
    bool waits = errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM;
    return waits ? -EAGAIN : -errno;
}

static ssize_t receive_bytes(const struct page_transport *t, char *to, size_t size)
{
    ssize_t got = recv(t->fd, to, size, 0);
    return got < 0 ? socket_error() : got;
}

static ssize_t send_pieces(const struct page_transport *t, const struct iovec *pieces, size_t count)
{
    struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = count };
    ssize_t sent = sendmsg(t->fd, &message, MSG_NOSIGNAL);
    return sent < 0 ? socket_error() : sent;
}

/* ---- input ---- */

/* The first bytes of a client: begins TLS. 0 or -errno. */
static int begin_records(struct page_transport *t, char first)
{
    if (tls_connection_is_plain(first)) {
        t->tls = NULL;
        return -EPROTOTYPE;
    }
    struct page_records *r = calloc(1, sizeof(*r));
    SSL *ssl = r ? tls_server_accept(t->tls->server) : NULL;
    if (!ssl || !tls_connection_open(&r->connection, ssl, &t->tls->chunks)) {
        free(r);
        return -ENOMEM;
    }
    t->records = r;
    return 0;
}

static bool has_records(const struct page_records *r)
{
    return r->at < r->len || tls_connection_has_plain(&r->connection);
}

/* Receives encrypted bytes, unless some wait. Positive, 0 at the end, or -errno. */
static ssize_t fill_input(struct page_transport *t)
{
    char in[INPUT_BYTES];
    if (t->records && has_records(t->records))
        return 1;
    ssize_t got = receive_bytes(t, in, sizeof(in));
    int rc = got > 0 && !t->records ? begin_records(t, in[0]) : 0;
    if (rc < 0 || got <= 0)
        return rc < 0 ? rc : got;
    memcpy(t->records->in, in, (size_t)got);
    t->records->at = 0;
    t->records->len = (size_t)got;
    return got;
}

/* No plain bytes are left. */
static ssize_t end_input(struct page_records *r)
{
    r->reported = r->failed;
    return r->failed ? -EPROTO : 0;
}

/* Continues the handshake, and then decrypts. */
static ssize_t open_records(struct page_records *r, char *to, size_t size)
{
    size_t len = 0;
    r->connection.in = span_of(r->in + r->at, r->len - r->at);
    enum tls_result result = r->established ? TLS_DONE : tls_connection_handshake(&r->connection);
    r->established = r->established || result == TLS_DONE;
    if (result == TLS_DONE)
        result = tls_connection_read(&r->connection, to, size, &len);
    r->at = r->len - r->connection.in.len;
    r->over = result == TLS_ENDED;
    r->failed = result == TLS_FAILED;
    if (len > 0)
        return (ssize_t)len;
    return r->over || r->failed ? end_input(r) : -EAGAIN;
}

ssize_t page_transport_receive(struct page_transport *t, char *to, size_t size)
{
    struct page_records *r = t->records;
    if (!t->tls || (r && r->reported))
        return receive_bytes(t, to, size); /* after a failure the caller discards them */
    if (r && (r->over || r->failed))
        return end_input(r);
    ssize_t got = fill_input(t);
    if (got <= 0)
        return got;
    got = open_records(t->records, to, size);
    int rc = page_transport_flush(t);
    return rc < 0 && rc != -EAGAIN ? rc : got;
}

bool page_transport_has_input(const struct page_transport *t)
{
    const struct page_records *r = t->records;
    return r && (r->over || r->failed || has_records(r));
}

/* ---- output ---- */

bool page_transport_has_output(const struct page_transport *t)
{
    return t->records && !tls_wire_is_empty(&t->records->connection.wire);
}

int page_transport_flush(struct page_transport *t)
{
    enum { PIECES = 8 };
    while (page_transport_has_output(t)) {
        struct tls_connection *c = &t->records->connection;
        struct span spans[PIECES];
        struct iovec pieces[PIECES];
        unsigned count = tls_wire_pieces(&c->wire, spans, PIECES);
        for (unsigned i = 0; i < count; i++)
            pieces[i] = (struct iovec){ (char *)(uintptr_t)spans[i].at, spans[i].len };
        ssize_t sent = send_pieces(t, pieces, count);
        if (sent < 0)
            return (int)sent;
        tls_wire_sent(&c->wire, c->chunks, (size_t)sent);
    }
    return 0;
}

/* Seals a part of a piece, as long as no more than SEAL_BYTES are sealed. */
static bool seal_piece(struct page_transport *t, struct span piece, size_t *sealed)
{
    piece = span_first(piece, SEAL_BYTES - *sealed);
    if (piece.len == 0)
        return true;
    *sealed += piece.len;
    return tls_connection_write(&t->records->connection, piece) == TLS_DONE;
}

ssize_t page_transport_send(struct page_transport *t, const struct iovec pieces[2])
{
    size_t sealed = 0;
    if (!t->tls)
        return send_pieces(t, pieces, 2);
    int rc = page_transport_flush(t);
    for (unsigned i = 0; i < 2 && rc == 0; i++)
        if (!seal_piece(t, span_of(pieces[i].iov_base, pieces[i].iov_len), &sealed))
            rc = -EPROTO;
    if (rc == 0)
        rc = page_transport_flush(t);
    return rc < 0 && (sealed == 0 || rc != -EAGAIN) ? rc : (ssize_t)sealed;
}
