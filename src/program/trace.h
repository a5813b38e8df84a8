/* SPDX-License-Identifier: MIT
 *
 * `weir trace`: what it tells, made once, and the two ways to tell it.
 */
#pragma once

#include "program/options.h"
#include "server/trace.h"

#include <stdio.h>

enum {
    PROGRAM_TRACE_LINES_MAX = 96,
    PROGRAM_TRACE_LINE_MAX = 6 * 1024,
    PROGRAM_TRACE_REQUEST_MAX = SESSION_READ_MAX
};

/* One thing that was decided: what it is about, in a word, and a sentence. */
struct program_trace_line {
    const char *about;
    char *text;
};

/* What a running server said. */
struct program_trace_live {
    bool asked;
    char url[256];
    int pid;
    size_t head_len;
    char head[SERVER_TRACE_HEAD_MAX];
};

struct program_trace {
    struct span request; /* its bytes */
    const char *method, *target, *host;
    const struct config *config;
    const struct server_trace *answer;
    const struct config_site *site; /* NULL: none */
    struct program_trace_line lines[PROGRAM_TRACE_LINES_MAX];
    unsigned count;
    char cause[PROGRAM_TRACE_LINE_MAX]; /* why it is no 200; empty when it is one */
    struct program_trace_live live;
};

/* Fills `lines` and `cause` from the rest; program_trace_forget frees them. */
void program_trace_explain(struct program_trace *t);
void program_trace_forget(struct program_trace *t);

/* What was decided of the file that is sent. */
void program_trace_explain_file(struct program_trace *t);

/* Adds a line. */
void program_trace_add(struct program_trace *t, const char *about, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void program_trace_set_cause(struct program_trace *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value of a field of the request. */
struct span program_trace_field(const struct program_trace *t, enum http_field field);

/* The next line of a head, without its end; false at the empty one. */
bool program_trace_next_field(struct span *head, struct span *ret_line);

/* Whether both heads say the same but for their dates. */
bool program_trace_same(struct span a, struct span b);

/* Whether a head has this line, or one that differs only as dates do. */
bool program_trace_has(struct span head, struct span line);

void program_trace_print_text(const struct program_trace *t, FILE *out);
void program_trace_print_json(const struct program_trace *t, FILE *out);

/* Reads how a running server was started: gives options of `weir serve`, and goes to its folder.
 * PROGRAM_OK, or the exit status after having said why not. What the options borrow is kept until
 * the program ends. */
int program_trace_read_start(int pid, struct program_options *ret_options,
                             const char *const **ret_environment);

/* Sends the request to the server at `live->url`, and keeps the head of its answer. Returns
 * likewise. */
int program_trace_ask(struct program_trace_live *live, struct span request);
