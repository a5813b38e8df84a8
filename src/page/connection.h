/* SPDX-License-Identifier: MIT
 *
 * One client of the statistics page: its bytes in and out, one request at a time.
 */
#pragma once

#include "page/answer.h"

#include <poll.h>

enum {
    PAGE_HEAD_MAX = 8 * 1024, /* bytes of a request; 431 past it */
    PAGE_HEAD_MS = 10000, /* for a request to be there, from its first byte or the last answer */
    PAGE_SEND_MS = 30000, /* for the client to take an answer, or an event */
    PAGE_LINGER_MS = 1000 /* for the client to see the answer before the end */
};

enum page_phase {
    PAGE_FREE,      /* there is no client */
    PAGE_READING,   /* a request is awaited, or some of it */
    PAGE_SENDING,   /* an answer, or an event, goes out */
    PAGE_STREAMING, /* between events */
    PAGE_LINGERING  /* all is sent; what the client still sends is thrown away */
};

struct page_connection {
    enum page_phase phase;
    int fd;
    bool guarded;    /* it came to where only this machine may ask */
    uint64_t due_ns; /* when it is given up */
    struct http_request request;
    size_t in_len;
    struct page_answer answer;
    size_t sent; /* of its head and body */
    char in[PAGE_HEAD_MAX];
};

/* Takes `fd`. */
void page_connection_open(struct page_connection *c, int fd, bool guarded, uint64_t now_ns);
void page_connection_close(struct page_connection *c, struct page_shared *shared);

/* What to wait for. */
short page_connection_events(const struct page_connection *c);

/* Does what can be done after poll(2) has told `events`, also none. */
void page_connection_act(struct page_connection *c, struct page_shared *shared, short events,
                         uint64_t now_ns);

/* Sends an event to a client that waits for the next one, with what it does not know yet. One that
 * has not taken the last goes without; it is told with a later one. */
void page_connection_tell(struct page_connection *c, struct page_shared *shared, uint64_t now_ns);

/* Whether nothing that was asked for is under way. */
bool page_connection_is_idle(const struct page_connection *c);
