/* SPDX-License-Identifier: MIT
 *
 * The error log reports lost lines of the access log: the first one at once, and their number when
 * no more are lost. It is silent in between, because a full disk can cost a thousand lines in a
 * second.
 *
 * Each worker reports its own losses. The processes that a worker forks share its state, so a model
 * with a process for each connection reports a loss once, too.
 */
#pragma once

#include "base/check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A loss is over when lines are written and none was lost for this time. So a disk that is almost
 * full causes at most two lines of each worker in this time. */
enum { LOG_LOSS_CALM_S = 10 };

struct log_loss {
    _Atomic uint64_t lines;   /* lost since the first report; 0: there is no loss */
    _Atomic uint64_t last_ns; /* when the last one was lost */
};

/* A state without a loss. The processes that this one forks later share it. NULL: there is no
 * memory. */
struct log_loss *log_loss_new(void);

/* Lines were lost, at least one. `why` is for people. Any thread of any process that shares the
 * state. */
void log_loss_add(struct log_loss *loss, uint64_t lines, const char *why, uint64_t now_ns);

/* Lines were written. Any thread of any process that shares the state. */
void log_loss_settle(struct log_loss *loss, uint64_t now_ns);

/* Whether log_loss_settle could have anything to report. */
static inline bool log_loss_is_open(const struct log_loss *loss)
{
    return atomic_load_explicit(&loss->lines, memory_order_relaxed) > 0;
}

/* The worker ends: reports a loss that is not over, and frees the state, which may be NULL. */
void log_loss_end(struct log_loss *loss);
