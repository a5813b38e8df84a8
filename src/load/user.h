/* SPDX-License-Identifier: MIT
 *
 * One emulated user: it sends a request, waits for the whole answer, thinks, and sends the next
 * request, on one connection that it keeps.
 *
 * A user takes some 300 bytes. The only other memory it holds is the part of a head that has
 * arrived, until the head is whole, and with TLS what load/tls.h names.
 */
#pragma once

#include "http/response.h"
#include "load/schedule.h"
#include "load/tls.h"

/* A request that is under way, or about to be. */
struct load_asked {
    uint64_t due_ns;  /* when it should start */
    uint64_t sent_ns; /* when its first byte went to the kernel; 0: not yet */
    uint32_t target;
    bool again;   /* sent on another connection, since the server had closed the first */
    bool counted; /* part of the measured requests */
};

enum load_connection_state {
    LOAD_CONNECTION_NONE,
    LOAD_CONNECTION_CONNECTING,
    LOAD_CONNECTION_SECURING, /* the TLS handshake is under way */
    LOAD_CONNECTION_OPEN
};

enum load_mood {
    LOAD_IDLE,     /* has nothing to do: the step has fewer users, or all requests are sent */
    LOAD_THINKING, /* in the heap */
    LOAD_AWAY,     /* in the heap, after a failure: it cannot send */
    LOAD_FREE,     /* open loop: has no request under way, and is in the ring */
    LOAD_ASKING    /* has requests under way */
};

struct load_user {
    struct load_random random;
    /* In the heap: when it continues. Idle: since when. Paced: of its request, or with streams of
     * its last request, while it waits for a place. */
    uint64_t due_ns;
    uint64_t connect_ns;    /* when it started to connect */
    uint64_t first_byte_ns; /* of the present answer */
    uint64_t body_hash;
    struct http_response response;
    struct load_tls *tls;             /* NULL: it has had no TLS connection yet */
    struct load_multiplex *multiplex; /* NULL: it has had no connection with HTTP/2 yet */
    char *tail;                       /* the part of a head that has arrived; NULL: none */
    uint32_t tail_len;
    int fd;
    uint32_t number;    /* in its thread */
    uint32_t global;    /* among the users of all threads and shards */
    uint32_t origin;    /* of the targets that it is connected to */
    uint32_t sent_part; /* bytes that are sent of the first request not sent whole */
    uint16_t first;     /* place in `asked`, a ring of plan->pipeline; with HTTP/2 the sent ones
                           are in any order */
    uint16_t asked_count, sent_count;
    uint8_t connection; /* enum load_connection_state */
    uint8_t mood;       /* enum load_mood */
    uint8_t failures;   /* in a row */
    bool timed;         /* in the heap, perhaps for an earlier time than due_ns */
    bool offered;       /* in the ring of free users */
    bool answered;      /* this connection has had an answer */
    bool began;         /* bytes of the present answer have arrived */
    bool in_body;
    bool discards; /* this connection can discard bodies in the kernel */
    struct load_asked asked[];
};

struct load_thread;

/* Whether its present connection uses TLS. */
static inline bool load_user_has_tls(const struct load_user *user)
{
    return user->tls && user->tls->connection.ssl;
}

/* Starts a cycle that is due at `due_ns`. In a closed loop it has as many requests as the plan
 * keeps under way. Otherwise it is one request, beside those that are under way. */
void load_user_begin(struct load_thread *thread, struct load_user *user, uint64_t due_ns);

/* Open loop: takes the next user out of the ring that can send one request more. NULL: there is
 * none. */
struct load_user *load_user_take_free(struct load_thread *thread);

/* Has the user continue at user->due_ns. */
void load_user_set_timer(struct load_thread *thread, struct load_user *user);

/* Ends a cycle, with no request under way: the user thinks, waits for its turn, or is idle. */
void load_user_rest(struct load_thread *thread, struct load_user *user);

/* Continues a user whose time in the heap has come. */
void load_user_wake(struct load_thread *thread, struct load_user *user);

/* Handles `events` of its connection: EPOLL bits. */
void load_user_event(struct load_thread *thread, struct load_user *user, unsigned events);

/* Fails what has exceeded a limit at thread->now_ns. */
void load_user_check_limits(struct load_thread *thread, struct load_user *user);
