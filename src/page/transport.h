/* SPDX-License-Identifier: MIT
 *
 * The bytes between one client of the statistics page and its socket: as they are, or in TLS
 * records. page/connection.h sees plain bytes. A call does what the socket allows and never waits.
 * It parses no HTTP, and has no deadlines.
 */
#pragma once

#include "tls/connection.h"

#include <sys/types.h>
#include <sys/uio.h>

struct tls_server;

/* The TLS of all clients. Zeroed: no listener has TLS. */
struct page_tls {
    struct tls_server *server; /* borrowed */
    struct tls_chunks chunks;  /* unused memory for records */
};

struct page_records;

struct page_transport {
    int fd;
    struct page_tls *tls;         /* NULL: plain */
    struct page_records *records; /* NULL: plain, or no byte has arrived */
};

/* Takes `fd`. Borrows `tls` until page_transport_close; NULL: the bytes are plain. */
void page_transport_open(struct page_transport *t, int fd, struct page_tls *tls);

/* Closes the socket, with close_notify where TLS is established. */
void page_transport_close(struct page_transport *t);

/* Receives at most `size` plain bytes, and returns how many. 0: the client has ended. Otherwise
 * -errno:
 *   -EAGAIN      there are none now, and poll(2) can report more
 *   -EPROTO      the client broke the protocol of TLS; the alert is sent
 *   -EPROTOTYPE  the client sent plain HTTP where TLS was expected; from now on bytes are plain */
ssize_t page_transport_receive(struct page_transport *t, char *to, size_t size);

/* Whether page_transport_receive has something to return that poll(2) does not report. */
bool page_transport_has_input(const struct page_transport *t);

/* Sends a part of two pieces, and returns how many bytes it took. With TLS these can still wait as
 * records: see page_transport_has_output. -EAGAIN: none now. Otherwise -errno. */
ssize_t page_transport_send(struct page_transport *t, const struct iovec pieces[2]);

/* Whether records wait to be sent. */
bool page_transport_has_output(const struct page_transport *t);

/* Sends records that wait. 0: all are sent. -EAGAIN: some wait. Otherwise -errno. */
int page_transport_flush(struct page_transport *t);

/* Sends no more: close_notify where there is TLS, and then a half-close. */
void page_transport_end(struct page_transport *t);
