/* SPDX-License-Identifier: MIT
 *
 * Plays the part of a model: gives a session its bytes in any portions, takes
 * its output in any portions, and keeps what came out. The input lies against
 * a page that may not be touched and is overwritten after each call, so that
 * reading past it, or keeping it, is seen.
 */
#pragma once

#include "answer.h"
#include "session/thread.h"

enum play_style {
    PLAY_WHOLE, /* as much as the session takes at once, and all of its output */
    PLAY_BYTES, /* one byte at a time, in; all of its output */
    PLAY_RANDOM /* portions of random sizes, both ways */
};

struct play_input {
    struct span bytes;
    enum cases_end end;
    enum play_style style;
    uint64_t seed; /* for PLAY_RANDOM */
};

struct play_result {
    char *bytes; /* what was sent, ours to free */
    size_t len;
    enum answer_state state;
    const char *broken; /* a breach of the session's contract, or NULL */
};

/* Plays one connection from beginning to end. The time stands still but for
 * CASES_END_EXPIRE. */
struct play_result play_connection(struct session_thread *worker, struct play_input input);
