/* SPDX-License-Identifier: MIT
 *
 * Whether a log file ends with a whole line. On a full disk a write can end inside a line. Without
 * a newline, the next line of any process would become a part of that line, and be lost.
 *
 * The processes that a master has started share one word for each file. A writer claims the word,
 * writes, and releases it with the state of the last line. So no process of them writes between a
 * torn line and the report of it, and the next writer begins with a newline.
 *
 * A worker can die while it has the word, and a hostile worker can keep or change it. So a claim
 * waits LOG_TAIL_WAIT_MS at most, and that once a second. Then it takes the word, and the writer
 * begins with a newline. At worst the file has an empty line.
 *
 * It does not cover two masters that append to one file. During an upgrade, a line that an old
 * worker tears after the new master has opened the log can take the next line with it.
 */
#pragma once

#include "base/check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LOG_TAIL_WAIT_MS = 100 };

/* The word of a file, in memory that processes share. */
struct log_tail {
    _Atomic uint32_t state;
};

/* One writer's turn. */
struct log_tail_turn {
    struct log_tail *tail;
    uint32_t mine;
    bool torn; /* the last line may be unfinished */
};

/* Maps the words. Call it before the processes that share them are forked. 0 or -errno. */
MUST_USE int log_tail_prepare(void);

/* The word of the open file `fd`; log_tail_prepare has been called. The word of a file that cannot
 * be examined is that of another file. Safe in a signal handler. */
struct log_tail *log_tail_of(int fd);

/* Reads the last byte of the file, which a process that has ended may have left unfinished. Only
 * the master has the right to read a log. */
void log_tail_examine(int fd);

/* Claims the word. `wait_again_ns` belongs to the process, 0 at first: a claim before that time
 * does not wait. */
struct log_tail_turn log_tail_claim(struct log_tail *tail, _Atomic uint64_t *wait_again_ns);

/* Whether the writer of this turn begins with a newline. A file that has just been made can have
 * the word of a removed one. It has no line yet. */
bool log_tail_needs_newline(const struct log_tail_turn *turn, int fd);

/* Releases it. `torn`: the file's last line is unfinished. */
void log_tail_release(struct log_tail_turn turn, bool torn);
