/* SPDX-License-Identifier: MIT
 *
 * `weir trace --json`: one object, whose members weir-trace(1) describes; `schema`
 * changes when one of them goes.
 */
#include "trace/trace.h"

#include "log/escape.h"

enum { SCHEMA = 1 };

static void print_text(FILE *out, struct span text)
{
    char escaped[6 * TRACE_LINE_MAX];
    size_t len = log_escape(escaped, sizeof(escaped), text, LOG_ESCAPE_JSON);
    fputc('"', out);
    fwrite(escaped, 1, len, out);
    fputc('"', out);
}

static void print_or_null(FILE *out, struct span text)
{
    if (text.len > 0)
        print_text(out, text);
    else
        fputs("null", out);
}

static void print_request(const struct trace *t, FILE *out)
{
    fputs("\"request\":{\"method\":", out);
    print_text(out, span_text(t->method));
    fputs(",\"target\":", out);
    print_text(out, span_text(t->target));
    fputs(",\"host\":", out);
    print_text(out, span_text(t->host));
    fputc('}', out);
}

static void print_site(const struct trace *t, FILE *out)
{
    fputs(",\"site\":", out);
    if (!t->site) {
        fputs("null", out);
        return;
    }
    struct span rule = t->answer->trace.rule;
    char text[512];
    (void)snprintf(text, sizeof(text), "%s%.*s", rule.at[0] == '.' ? "*" : "", (int)rule.len,
                   rule.at);
    fputs("{\"name\":", out);
    print_text(out, span_text(t->site->name));
    fputs(",\"rule\":", out);
    print_text(out, span_text(text));
    fputs(",\"root\":", out);
    print_text(out, span_text(t->site->root));
    fputc('}', out);
}

static void print_file(const struct trace *t, FILE *out)
{
    const struct session_trace *trace = &t->answer->trace;
    fputs(",\"file\":", out);
    if (!trace->entry) {
        fputs("null", out);
        return;
    }
    const struct site_entry *entry = trace->entry;
    const struct site_file *file = &entry->file[trace->coding];
    const char *cache = trace->cache != SITE_CACHE_FITS || trace->headless ? "none"
                        : entry->cache.descriptors > 0                     ? "descriptor"
                                                                           : "memory";
    fputs("{\"type\":", out);
    print_text(out, entry->type);
    fprintf(out,
            ",\"size\":%llu,\"modified_ns\":%lld,\"encoding\":", (unsigned long long)file->size,
            (long long)file->modified_ns);
    print_or_null(out, http_coding_name(trace->coding));
    fputs(",\"etag\":", out);
    print_or_null(out, file->etag);
    fprintf(out, ",\"fallback\":%s,\"cache\":\"%s\"}", trace->fallback ? "true" : "false", cache);
}

static void print_lines(const struct trace *t, FILE *out)
{
    fputs(",\"steps\":[", out);
    for (unsigned i = 0; i < t->count; i++) {
        fprintf(out, "%s{\"about\":\"%s\",\"text\":", i > 0 ? "," : "", t->lines[i].about);
        print_text(out, span_text(t->lines[i].text));
        fputc('}', out);
    }
    fputc(']', out);
}

/* `"status":404,"head":[...]`, the status line not among them. */
static void print_answer(struct span head, FILE *out)
{
    struct span line = SPAN("HTTP/1.1 000");
    bool any = false;
    (void)trace_next_field(&head, &line);
    fprintf(out, "\"status\":%.*s,\"head\":[", 3, line.at + sizeof("HTTP/1.1 ") - 1);
    while (trace_next_field(&head, &line)) {
        fputs(any ? "," : "", out);
        print_text(out, line);
        any = true;
    }
    fputc(']', out);
}

static void print_live(const struct trace *t, FILE *out)
{
    struct span head = span_of(t->answer->head, t->answer->head_len);
    struct span live = span_of(t->live.head, t->live.head_len);
    fputs(",\"live\":", out);
    if (!t->live.asked) {
        fputs("null", out);
        return;
    }
    fprintf(out, "{\"pid\":%d,\"url\":", t->live.pid);
    print_text(out, span_text(t->live.url));
    fprintf(out, ",\"same\":%s,", trace_same(head, live) ? "true" : "false");
    print_answer(live, out);
    fputc('}', out);
}

void trace_print_json(const struct trace *t, FILE *out)
{
    const struct http_target *target = &t->answer->trace.target;
    fprintf(out, "{\"schema\":%d,", SCHEMA);
    print_request(t, out);
    fputs(",\"path\":", out);
    print_or_null(out, target->fault == HTTP_FAULT_NONE ? target->path : span_of(NULL, 0));
    print_site(t, out);
    print_lines(t, out);
    print_file(t, out);
    fputc(',', out);
    print_answer(span_of(t->answer->head, t->answer->head_len), out);
    fputs(",\"cause\":", out);
    print_or_null(out, span_text(t->cause));
    print_live(t, out);
    fputs("}\n", out);
}
