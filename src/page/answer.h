/* SPDX-License-Identifier: MIT
 *
 * The answers of the statistics page. It moves no bytes and never waits.
 *
 *   /            the page, with /page.css, /page.js, /charts.js, /chart.js, /favicon.svg
 *   /stats.json  the output of `weir stats --json`
 *   /events      the same, and then each second's changes, as server-sent events
 *   /metrics     for Prometheus, in the format that Accept prefers
 *   /healthz     200 while the server serves, else 503; the only path without a password
 */
#pragma once

#include "base/buf.h"
#include "http/request.h"
#include "page/numbers.h"
#include "page/password.h"
#include "page/transport.h"

enum { PAGE_ANSWER_HEAD_MAX = 1024 };

/* The state that all answers share. */
struct page_shared {
    const struct stats_segment *segment;
    struct page_numbers numbers;
    struct page_password password;
    unsigned streams, streams_max; /* open event streams, and the most that may be open */
    int64_t wall_s;                /* the time of day, for Date: seconds since 1970 */
    struct page_tls tls;
};

struct page_answer {
    char head[PAGE_ANSWER_HEAD_MAX];
    size_t head_len;
    struct span body;       /* static, or part of `text` */
    struct page_text *text; /* holds it until page_answer_drop; or NULL */
    bool stream;            /* events follow as long as the client reads */
    uint64_t known_ns;      /* the client has the seconds up to this moment; 0: none */
    bool close;             /* the connection ends after it */
    int64_t wall_s;         /* its Date */
};

/* Answers a parsed request. `guarded`: it came to a listener on which only this machine may ask. */
void page_answer_request(struct page_answer *answer, struct page_shared *shared,
                         const struct http_request *request, const char *head, bool guarded,
                         uint64_t now_ns);

/* Answers bytes that are no request: with `status` and its sentence, and the connection ends.
 * `head_only`: the method was HEAD, as far as it could be read. */
void page_answer_status(struct page_answer *answer, enum http_status status, bool head_only,
                        int64_t wall_s);

/* Answers plain HTTP at an address with TLS, and the connection ends. */
void page_answer_plain(struct page_answer *answer, int64_t wall_s);

void page_answer_drop(struct page_answer *answer);

/* Whether an Accept field prefers OpenMetrics to the older text format. */
bool page_answer_is_openmetrics(struct span accept);

/* Whether a host names this machine and nothing else: localhost, 127.0.0.0/8 or [::1]. `host` is
 * the host of struct http_target. A page on another site can point its own name to 127.0.0.1
 * (DNS rebinding) and then read what it finds there, but a browser sends that name as Host. */
bool page_answer_host_is_local(struct span host);
