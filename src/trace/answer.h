/* SPDX-License-Identifier: MIT
 *
 * Answering one request as a worker of a configuration would, and keeping how the answer came
 * about. It needs no socket, no log and no process of its own.
 */
#pragma once

#include "config/config.h"
#include "log/error.h"
#include "server/resources.h"
#include "server/sitefiles.h"
#include "session/trace.h"

enum { TRACE_HEAD_MAX = 16 * 1024 };

struct trace_http2;

struct trace_answer {
    struct server_resources holdings;
    struct server_auth auth;
    struct server_sitefiles sitefiles;
    struct log_access_sink log; /* the log is off */
    struct session_thread worker;
    bool started;
    struct session_trace trace;
    size_t head_len; /* 0: there is no answer; `why` holds the reason */
    char head[TRACE_HEAD_MAX];
    char why[LOG_ERROR_LINE_MAX];
};

/* Answers the request in `bytes`, at most SESSION_READ_MAX of them, as one that came from `peer`,
 * over TLS or not. With `http2`, answers that request instead. A root process becomes the
 * configuration's user first, permanently. Borrows `config` until trace_answer_free, and `http2`
 * for this call. NULL: out of memory. */
struct trace_answer *trace_answer_new(const struct config *config, struct span bytes,
                                      struct trace_http2 *http2, struct session_peer peer,
                                      bool over_tls);
void trace_answer_free(struct trace_answer *trace);
