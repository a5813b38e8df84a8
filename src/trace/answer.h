/* SPDX-License-Identifier: MIT
 *
 * One request, answered as a worker of a configuration would, and how it came to
 * that. Without a socket, a log or a process of its own.
 */
#pragma once

#include "config/config.h"
#include "log/error.h"
#include "server/resources.h"
#include "session/trace.h"

enum { TRACE_HEAD_MAX = 16 * 1024 };

struct trace_answer {
    struct server_resources holdings;
    struct log_access_sink log; /* off */
    struct session_thread worker;
    bool started;
    struct session_trace trace;
    size_t head_len; /* 0: there is no answer, for the reason in `why` */
    char head[TRACE_HEAD_MAX];
    char why[LOG_ERROR_LINE_MAX];
};

/* Answers the request in `bytes`, at most SESSION_READ_MAX of them. As root it becomes the
 * configuration's user first, for good. `config` is borrowed until trace_answer_free; NULL: there
 * is no memory. */
struct trace_answer *trace_answer_new(const struct config *config, struct span bytes);
void trace_answer_free(struct trace_answer *trace);
