/* SPDX-License-Identifier: MIT
 *
 * One client of the statistics page: it receives and sends bytes, one request at a time.
 */
#pragma once

#include "page/answer.h"
#include "page/transport.h"

#include <poll.h>

enum {
    PAGE_HEAD_MAX = 8 * 1024, /* bytes of a request; 431 above it */
    PAGE_HEAD_MS = 10000,     /* for a whole request, from the last answer on */
    PAGE_SEND_MS = 30000,     /* for the client to take an answer or an event */
    PAGE_LINGER_MS = 1000     /* for the client to read the answer before the close */
};

enum page_phase {
    PAGE_FREE,      /* there is no client */
    PAGE_READING,   /* waits for a request or the rest of one */
    PAGE_SENDING,   /* sends an answer or an event */
    PAGE_STREAMING, /* waits for the next event */
    PAGE_LINGERING  /* all is sent; discards what the client still sends */
};

struct page_connection {
    enum page_phase phase;
    struct page_transport transport;
    bool guarded;    /* only this machine may ask on its listener */
    uint64_t due_ns; /* when it is closed */
    struct http_request request;
    size_t in_len;
    struct page_answer answer;
    size_t sent; /* bytes of head and body */
    char in[PAGE_HEAD_MAX];
};

/* Takes `fd`. `tls` is as page_transport_open defines it. */
void page_connection_open(struct page_connection *c, int fd, struct page_tls *tls, bool guarded,
                          uint64_t now_ns);
void page_connection_close(struct page_connection *c, struct page_shared *shared);

/* The poll(2) events to wait for. */
short page_connection_events(const struct page_connection *c);

/* Does what is possible after poll(2) reported `events`. 0 is allowed, when only time has
 * passed. */
void page_connection_act(struct page_connection *c, struct page_shared *shared, short events,
                         uint64_t now_ns);

/* Sends an event, with what the client does not know yet, if the client waits for one. A client
 * that has not taken the last event gets none now, and more in a later one. */
void page_connection_send_event(struct page_connection *c, struct page_shared *shared,
                                uint64_t now_ns);

/* Whether no answer is under way. */
bool page_connection_is_idle(const struct page_connection *c);
