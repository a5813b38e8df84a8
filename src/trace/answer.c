/* SPDX-License-Identifier: MIT */
#include "trace/answer.h"

#include "os/clock.h"
#include "os/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void keep_first_error(void *context, const char *text)
{
    struct trace_answer *t = context;
    if (!t->why[0])
        (void)snprintf(t->why, sizeof(t->why), "%s", text);
}

static int open_traced(struct trace_answer *t, const struct config *config)
{
    struct server_capacity capacity = server_capacity_of(config, NULL, 1, os_process_raise_files());
    int rc = log_access_open(&t->log, "off", LOG_COMBINED, NULL);
    if (rc == 0)
        rc = server_resources_open(&t->holdings, config, &capacity, 1, &t->log, NULL);
    if (rc == 0)
        server_resources_use_tls(&t->holdings, config, NULL, server_tls_port(config));
    if (rc == 0 && geteuid() == 0)
        rc = server_resources_become(config->user);
    if (rc == 0)
        rc = session_thread_start(&t->worker, &t->holdings.shared, 0);
    t->started = rc == 0;
    return rc;
}

/* Keeps the answer's head, which is complete in the first piece. */
static void keep_head(struct trace_answer *t, const struct session *s)
{
    struct session_out out = session_output(s);
    const char *end = memmem(out.piece[0].at, out.piece[0].len, "\r\n\r\n", 4);
    CHECK(end);
    size_t len = (size_t)(end + 4 - out.piece[0].at);
    CHECK(len <= sizeof(t->head));
    memcpy(t->head, out.piece[0].at, len);
    t->head_len = len;
}

static void answer_traced(struct trace_answer *t, struct span bytes, bool over_tls)
{
    struct session s;
    uint64_t now_ns = os_clock_now_ns();
    session_thread_tick(&t->worker, now_ns, os_clock_wall_s());
    session_trace_begin(&t->worker, &t->trace);
    session_open(&s, &t->worker, (struct session_origin){ 0 }, now_ns);
    unsigned want = over_tls ? session_trace_feed_decrypted(&s, bytes, now_ns)
                             : session_feed(&s, bytes, now_ns);
    if (want & SESSION_WRITE)
        keep_head(t, &s);
    else
        keep_first_error(t, "the request is incomplete, so the server would wait for the rest");
    session_close(&s);
    session_trace_begin(&t->worker, NULL);
}

struct trace_answer *trace_answer_new(const struct config *config, struct span bytes, bool over_tls)
{
    struct trace_answer *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->log.fd = -1;
    log_error_divert(keep_first_error, t);
    int rc = open_traced(t, config);
    log_error_divert(NULL, NULL);
    if (rc < 0)
        keep_first_error(t, strerror(-rc));
    else
        answer_traced(t, bytes, over_tls);
    return t;
}

void trace_answer_free(struct trace_answer *trace)
{
    session_trace_done(&trace->trace);
    if (trace->started)
        session_thread_stop(&trace->worker);
    server_resources_close(&trace->holdings);
    log_access_close(&trace->log);
    free(trace);
}
