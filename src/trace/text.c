/* SPDX-License-Identifier: MIT
 *
 * `weir trace` for people: the decisions line by line, and the head of the answer. With --live
 * it marks where the running server's answer differs.
 */
#include "trace/trace.h"

#include "base/escape.h"

#include <stdlib.h>
#include <unistd.h>

enum { COLUMN = 12 };

static void print_safely(FILE *out, struct span text)
{
    char escaped[4 * TRACE_LINE_MAX];
    size_t len = escape_text(escaped, sizeof(escaped), text, ESCAPE_TEXT);
    fwrite(escaped, 1, len, out);
}

static void print_line(FILE *out, const char *about, struct span text)
{
    fprintf(out, "%-*s", COLUMN, about);
    print_safely(out, text);
    fputc('\n', out);
}

bool trace_next_field(struct span *head, struct span *ret_line)
{
    const char *end = memmem(head->at, head->len, "\r\n", 2);
    if (!end || end == head->at)
        return false;
    *ret_line = span_of(head->at, (size_t)(end - head->at));
    *head = span_skip(*head, ret_line->len + 2);
    return true;
}

/* HTTP/2 writes the name in lower case. */
static bool is_date(struct span line)
{
    const struct span name = SPAN("date:");
    return span_equal_nocase(span_first(line, name.len), name);
}

/* Whether a head has this line. Two Date lines are equal. */
static bool has_line(struct span head, struct span line)
{
    struct span other;
    const bool date = is_date(line);
    while (trace_next_field(&head, &other))
        if (span_equal(other, line) || (date && is_date(other)))
            return true;
    return false;
}

static bool has_all(struct span head, struct span lines)
{
    struct span line;
    while (trace_next_field(&lines, &line))
        if (!has_line(head, line))
            return false;
    return true;
}

bool trace_same(struct span a, struct span b)
{
    return has_all(a, b) && has_all(b, a);
}

/* Prints the lines of one head, with `mark` before those that the other head does not have. */
static void print_marked_head(FILE *out, struct span head, struct span other, char mark)
{
    struct span line;
    while (trace_next_field(&head, &line)) {
        fputc(has_line(other, line) ? ' ' : mark, out);
        fputc(' ', out);
        print_safely(out, line);
        fputc('\n', out);
    }
}

static void print_missing(FILE *out, struct span head, struct span other)
{
    struct span line;
    while (trace_next_field(&head, &line)) {
        if (has_line(other, line))
            continue;
        fputs("- ", out);
        print_safely(out, line);
        fputc('\n', out);
    }
}

static bool is_colourful(FILE *out)
{
    const char *plain = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(fileno(out)) == 1 && (!plain || !plain[0]) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

void trace_print_text(const struct trace *t, FILE *out)
{
    struct span head = span_of(t->answer->head, t->answer->head_len), rest = head,
                status = { 0 }; /* gcc 14 does not see that there always is one */
    char asked[TRACE_LINE_MAX];
    bool bold = is_colourful(out);
    (void)snprintf(asked, sizeof(asked), "%s %s, host %s, %s", t->method, t->target, t->host,
                   t->http2 ? "HTTP/2" : "HTTP/1.1");
    print_line(out, "request", span_text(asked));
    for (unsigned i = 0; i < t->count; i++)
        print_line(out, t->lines[i].about, span_text(t->lines[i].text));
    (void)trace_next_field(&rest, &status);
    fputs(bold ? "\033[1m" : "", out);
    print_line(out, "answer", span_skip(status, sizeof("HTTP/1.1 ") - 1));
    if (t->cause[0])
        print_line(out, "because", span_text(t->cause));
    fputs(bold ? "\033[0m\n" : "\n", out);
    if (!t->live.asked) {
        print_marked_head(out, head, head, ' ');
        return;
    }
    struct span live = span_of(t->live.head, t->live.head_len);
    bool same = trace_same(head, live);
    fprintf(out, "Process %d at %s gives %s answer over HTTP/%s%s:\n", t->live.pid, t->live.url,
            same ? "the same" : "another", t->http2 ? "2" : "1.1",
            same ? "" : " (+ only there, - only expected)");
    if (t->live.agreed.protocol)
        fprintf(out, "Over TLS: %s, %s, %s\n", t->live.agreed.protocol, t->live.agreed.cipher,
                t->live.agreed.group);
    print_marked_head(out, live, head, '+');
    print_missing(out, head, live);
}
