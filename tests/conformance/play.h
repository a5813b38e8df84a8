/* SPDX-License-Identifier: MIT
 *
 * Acts as a model: feeds a session in any portions, takes its output in any
 * portions, and keeps the output. The input ends at a page without access, and is
 * overwritten after each call. So a session that reads past its input, or keeps a
 * pointer to it, fails.
 */
#pragma once

#include "answer.h"
#include "session/thread.h"

enum play_style {
    PLAY_WHOLE, /* as much as the session accepts, and all of its output */
    PLAY_BYTES, /* input byte by byte, and all of the output */
    PLAY_RANDOM /* portions of random sizes in both directions */
};

enum play_transport {
    PLAY_PLAIN,
    PLAY_TLS,    /* OpenSSL keeps the first records, as after any handshake */
    PLAY_SETTLED /* TLS after the first answer: without OpenSSL's layer of records */
};

struct play_input {
    struct span bytes;
    enum cases_end end;
    enum play_style style;
    uint64_t seed;                 /* for PLAY_RANDOM */
    enum play_transport transport; /* over TLS, the result has the decrypted output */
    bool http2;                    /* over TLS, the client offers it; otherwise the bytes decide */
};

struct play_result {
    char *bytes; /* the output, which the caller frees */
    size_t len;
    enum answer_state state;
    const char *broken; /* a breach of the session's contract, or NULL */
};

/* Plays one connection from beginning to end. The time changes only for
 * CASES_END_EXPIRE. */
struct play_result play_connection(struct session_thread *worker, struct play_input input);
