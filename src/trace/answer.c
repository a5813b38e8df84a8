/* SPDX-License-Identifier: MIT */
#include "trace/answer.h"

#include "model/model.h"
#include "os/clock.h"
#include "os/process.h"
#include "server/compression.h"
#include "trace/http2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAMES_MAX = 256 * 1024 };

static void keep_first_error(void *context, const char *text)
{
    struct trace_answer *t = context;
    if (!t->why[0])
        (void)snprintf(t->why, sizeof(t->why), "%s", text);
}

/* The lists of users are read before the change of user, as the master does. */
static int use_auth(struct trace_answer *t, const struct config *config)
{
    char why[AUTH_WHY_MAX] = "";
    int rc = server_auth_open(&t->auth, config, why);
    if (rc < 0)
        keep_first_error(t, why);
    return rc < 0 ? rc : server_resources_use_auth(&t->holdings, config, &t->auth);
}

static int open_traced(struct trace_answer *t, const struct config *config)
{
    struct server_capacity capacity = server_capacity_of(config, NULL, 1, os_process_raise_files());
    char no_files[SERVER_SITEFILES_WHY_MAX];
    int rc = server_sitefiles_open(&t->sitefiles, &config, no_files);
    if (rc < 0)
        keep_first_error(t, no_files);
    if (rc == 0)
        rc = log_access_open(&t->log, "off", NULL, NULL);
    if (rc == 0)
        rc = server_resources_open(&t->holdings, config, &capacity, 1, &t->log, NULL);
    char why[MODEL_WHY_MAX];
    if (rc == 0)
        rc = server_compression_begin(&t->holdings, config,
                                      model_choose(span_text(config->model), why), false);
    t->holdings.shared.h2c = true; /* the preface alone decides here */
    if (rc == 0)
        server_resources_use_tls(&t->holdings, config, NULL, server_tls_port(config));
    if (rc == 0)
        rc = use_auth(t, config);
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

/* Adds the memory that the session sends now. Files are left out: heads are never in them. */
static size_t collect(const struct session *s, struct buf *frames)
{
    struct session_out out = session_output(s);
    size_t bytes = (size_t)out.file_len;
    for (unsigned i = 0; i < out.count; i++) {
        buf_add(frames, out.piece[i]);
        bytes += out.piece[i].len;
    }
    return bytes;
}

/* Feeds and sends until the head of the answer was sent. */
static void answer_frames(struct trace_answer *t, struct session *s, struct trace_http2 *http2,
                          bool over_tls, uint64_t now_ns)
{
    static char bytes[FRAMES_MAX];
    struct span in = trace_http2_frames(http2);
    struct buf frames = buf_over(bytes, sizeof(bytes)), head = buf_over(t->head, sizeof(t->head)),
               why = buf_over(t->why, sizeof(t->why) - 1);
    enum trace_http2_result result = TRACE_HTTP2_MORE;
    while (result == TRACE_HTTP2_MORE && (in.len > 0 || session_has_output(s))) {
        struct span part = span_first(in, session_room(s));
        in = span_skip(in, part.len);
        if (part.len > 0 && over_tls)
            (void)session_trace_feed_decrypted(s, part, true, now_ns);
        else if (part.len > 0)
            (void)session_feed(s, part, now_ns);
        if (session_has_output(s))
            (void)session_sent(s, collect(s, &frames), now_ns);
        else if (part.len == 0)
            break;
        result = trace_http2_read(http2, buf_span(&frames), &head, &why);
    }
    t->head_len = result == TRACE_HTTP2_HEAD ? head.len : 0;
    if (result == TRACE_HTTP2_MORE)
        keep_first_error(t, "the server waits for more");
}

static void answer_http1(struct trace_answer *t, struct session *s, struct span bytes,
                         bool over_tls, uint64_t now_ns)
{
    unsigned want = over_tls ? session_trace_feed_decrypted(s, bytes, false, now_ns)
                             : session_feed(s, bytes, now_ns);
    if (want & SESSION_WRITE)
        keep_head(t, s);
    else
        keep_first_error(t, "the request is incomplete, so the server would wait for the rest");
}

static void answer_traced(struct trace_answer *t, struct span bytes, struct trace_http2 *http2,
                          struct session_peer peer, bool over_tls)
{
    struct session s;
    uint64_t now_ns = os_clock_now_ns();
    session_thread_tick(&t->worker, now_ns, os_clock_wall_s());
    session_trace_begin(&t->worker, &t->trace);
    session_open(&s, &t->worker, (struct session_origin){ .peer = peer }, now_ns);
    if (http2)
        answer_frames(t, &s, http2, over_tls, now_ns);
    else
        answer_http1(t, &s, bytes, over_tls, now_ns);
    session_close(&s);
    session_trace_begin(&t->worker, NULL);
}

struct trace_answer *trace_answer_new(const struct config *config, struct span bytes,
                                      struct trace_http2 *http2, struct session_peer peer,
                                      bool over_tls)
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
        answer_traced(t, bytes, http2, peer, over_tls);
    return t;
}

void trace_answer_free(struct trace_answer *trace)
{
    session_trace_done(&trace->trace);
    if (trace->started)
        session_thread_stop(&trace->worker);
    server_resources_close(&trace->holdings);
    server_auth_close(&trace->auth);
    server_sitefiles_close(&trace->sitefiles);
    log_access_close(&trace->log);
    free(trace);
}
