/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 on a user's connection: the requests under way are streams of one connection, and their
 * answers may end in any order. It stands between load/connection.h, which opens and closes, and
 * load/http2.h, which knows the frames.
 *
 * The requests that are sent are the first `sent_count` ones of the ring `asked`. The place of a
 * request in the ring is the place of its stream. When another request than the first one ends,
 * the first one takes its place.
 */
#pragma once

#include "load/frames.h"
#include "load/plan.h"

struct load_thread;
struct load_user;

/* The HTTP/2 of one user. It takes some 200 bytes, and some 80 for each stream. */
struct load_multiplex {
    struct load_http2 http2;
    bool begun;        /* the preface of this connection is written */
    char *unsent;      /* bytes that the kernel has not taken; NULL: none. Not with TLS */
    size_t unsent_len; /* unsent[unsent_at .. unsent_len) */
    size_t unsent_at;
    size_t waiting; /* bytes written since the kernel took everything */
    struct load_multiplex_answer {
        uint64_t first_byte_ns; /* 0: no byte has arrived */
        uint64_t body_hash;
    } * answers;                        /* at the places of the streams */
    struct load_http2_stream streams[]; /* plan->pipeline of them, then the answers */
};

/* Gives the user its HTTP/2, unless it has it. false: out of memory. */
MUST_USE bool load_multiplex_prepare(const struct load_thread *thread, struct load_user *user);
void load_multiplex_free(struct load_multiplex *multiplex);

/* The number of requests that the user may have under way. */
unsigned load_multiplex_limit(const struct load_thread *thread, const struct load_user *user);

/* Sends the requests that are not sent yet, as far as the server accepts them. */
void load_multiplex_transmit(struct load_thread *thread, struct load_user *user);

/* Reads answers from decrypted bytes. Keeps an unfinished frame in user->tail. false: the
 * connection is closed, and the user's cycle has continued elsewhere. */
bool load_multiplex_read(struct load_thread *thread, struct load_user *user, struct span bytes);

/* Cancels the streams that have exceeded a limit. Returns whether the user's cycle continues. */
bool load_multiplex_check_limits(struct load_thread *thread, struct load_user *user);

/* Fails the requests whose answers had begun, after the loss of the connection. */
void load_multiplex_fail_begun(struct load_thread *thread, struct load_user *user,
                               enum load_error error);

/* Tells the server that the connection ends. */
void load_multiplex_end(struct load_thread *thread, struct load_user *user);

/* Forgets the state of the connection. */
void load_multiplex_close(struct load_user *user);
