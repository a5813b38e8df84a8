/* SPDX-License-Identifier: MIT
 *
 * What the statistics page answers to a request: which of its files or texts, or why
 * not. It moves no bytes and waits for nobody.
 *
 *   /            the page, with /page.css, /page.js, /chart.js, /favicon.svg
 *   /stats.json  what `weir stats --json` prints
 *   /events      the same, and each second what is new, as server-sent events
 *   /metrics     for Prometheus, in the format that Accept prefers
 *   /healthz     200 while the server serves, else 503; the only one without a password
 */
#pragma once

#include "base/buf.h"
#include "http/request.h"
#include "page/numbers.h"
#include "page/password.h"

enum { PAGE_ANSWER_HEAD_MAX = 1024 };

/* What answers are made of. */
struct page_shared {
    const struct stats_segment *segment;
    struct page_numbers numbers;
    struct page_password password;
    unsigned streams, streams_max; /* event streams that are open, and may be */
    int64_t wall_s;                /* the time of day, for Date: seconds since 1970 */
};

struct page_answer {
    char head[PAGE_ANSWER_HEAD_MAX];
    size_t head_len;
    struct span body;       /* static, or of `text` */
    struct page_text *text; /* held until page_answer_drop; or NULL */
    bool stream;            /* events follow for as long as there is somebody to get them */
    uint64_t known_ns;      /* up to which moment its client has had them; 0: none */
    bool close;             /* the connection ends behind it */
    int64_t wall_s;         /* its Date */
};

/* Answers a parsed request that came to a listener on which only this machine may ask
 * (`guarded`), or anybody. */
void page_answer_request(struct page_answer *answer, struct page_shared *shared,
                         const struct http_request *request, const char *head, bool guarded,
                         uint64_t now_ns);

/* Answers what is no request: with `status` and its sentence, unless HEAD asked as far as can be
 * told, and the connection ends. */
void page_answer_status(struct page_answer *answer, enum http_status status, bool head_only,
                        int64_t wall_s);

void page_answer_drop(struct page_answer *answer);

/* Whether an Accept field prefers OpenMetrics to the older text. */
bool page_answer_is_openmetrics(struct span accept);

/* Whether a host names this machine and nothing else: localhost, 127.0.0.0/8 or [::1]. `host` is
 * that of struct http_target, without the port. */
bool page_answer_host_is_local(struct span host);
