/* SPDX-License-Identifier: MIT
 *
 * How one request is answered and why, in sentences. They are made once, and printed as text or
 * as JSON.
 */
#pragma once

#include "tls/connection.h"
#include "trace/answer.h"

#include <stdio.h>

enum { TRACE_LINES_MAX = 96, TRACE_LINE_MAX = 6 * 1024, TRACE_REQUEST_MAX = SESSION_READ_MAX };

/* One decision: its subject in a word, and a sentence. */
struct trace_line {
    const char *about;
    char *text;
};

/* The answer of a running server. */
struct trace_live {
    bool asked;
    char url[256];
    int pid;
    struct tls_agreement agreed; /* NULL pointers: there is no TLS */
    char group[64];              /* of `agreed` */
    size_t head_len;
    char head[TRACE_HEAD_MAX];
};

struct trace {
    struct span request;       /* its bytes, in the form of HTTP/1.1 */
    struct trace_http2 *http2; /* the same over HTTP/2; NULL: over HTTP/1.1 */
    const char *method, *target, *host;
    const char *from; /* the client's address */
    const struct config *config;
    const struct trace_answer *answer;
    const struct config_site *site; /* NULL: none */
    struct trace_line lines[TRACE_LINES_MAX];
    unsigned count;
    char cause[TRACE_LINE_MAX]; /* why the answer is not a success; empty when it is */
    struct trace_live live;
};

/* Fills `lines` and `cause` from the other members. trace_forget frees them. */
void trace_explain(struct trace *t);
void trace_forget(struct trace *t);

/* Adds the lines about the file or the listing that is sent. */
void trace_explain_file(struct trace *t);

/* Whether the entry that is sent is a listing. */
static inline bool trace_has_listing(const struct session_trace *trace)
{
    return trace->entry && trace->result == SITE_LISTING && !trace->fallback;
}

/* Adds a line. */
void trace_add(struct trace *t, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trace_set_cause(struct trace *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value of a field of the request. */
struct span trace_field(const struct trace *t, enum http_field field);

/* Takes the next line of a head, without its CRLF. False at the empty line. */
bool trace_next_field(struct span *head, struct span *ret_line);

/* Whether both heads have the same lines, except for their dates. */
bool trace_same(struct span a, struct span b);

void trace_print_text(const struct trace *t, FILE *out);
void trace_print_json(const struct trace *t, FILE *out);

static inline bool trace_is_over_tls(const struct trace_live *live)
{
    return strncmp(live->url, "https://", 8) == 0;
}

/* Sends the request, or with `http2` that one, to the server at `live->url`, and keeps the head of
 * its answer. Over TLS it names `host`, and accepts any certificate. 0 or -errno. -EPROTO over
 * HTTP/2: the server refuses it, or does not speak HTTP/2, and the head is the reason in words. */
MUST_USE int trace_ask(struct trace_live *live, struct span request, struct trace_http2 *http2,
                       const char *host);
