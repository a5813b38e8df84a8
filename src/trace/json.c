/* SPDX-License-Identifier: MIT
 *
 * `weir trace --json`: one object. weir-trace(1) describes its members. `schema` changes when a
 * member is removed.
 */
#include "trace/trace.h"

#include "base/duration.h"
#include "json/writer.h"

enum { SCHEMA = 1 };

static void add_or_null(struct json_writer *list, const char *name, struct span text)
{
    if (text.len > 0)
        json_writer_add_span(list, name, text);
    else
        json_writer_add_null(list, name);
}

static void add_request_object(struct json_writer *list, const struct trace *t)
{
    struct json_writer object = json_writer_begin(list, "request", '{');
    json_writer_add_text(&object, "method", t->method);
    json_writer_add_text(&object, "target", t->target);
    json_writer_add_text(&object, "host", t->host);
    json_writer_add_text(&object, "protocol", t->http2 ? "HTTP/2.0" : "HTTP/1.1");
    json_writer_end(&object, '}');
}

static void add_site_object(struct json_writer *list, const struct trace *t)
{
    if (!t->site) {
        json_writer_add_null(list, "site");
        return;
    }
    struct span rule = t->answer->trace.rule;
    char text[512];
    (void)snprintf(text, sizeof(text), "%s%.*s", rule.at[0] == '.' ? "*" : "", (int)rule.len,
                   rule.at);
    struct json_writer object = json_writer_begin(list, "site", '{');
    json_writer_add_text(&object, "name", t->site->name);
    json_writer_add_text(&object, "rule", text);
    if (t->site->root)
        json_writer_add_text(&object, "root", t->site->root);
    json_writer_end(&object, '}');
}

/* The time of the file that was read, in nanoseconds. A form in memory has whole seconds alone. */
static int64_t modified_ns_of(const struct session_trace *trace, const struct site_file *file)
{
    for (unsigned i = 0; i < trace->steps.count; i++)
        if (trace->steps.step[i].version == file->version)
            return trace->steps.step[i].modified_ns;
    return site_file_last_modified_s(file) * (int64_t)DURATION_SECOND; /* it changed meanwhile */
}

static void add_file_object(struct json_writer *list, const struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    if (!trace->entry || trace_has_listing(trace)) {
        json_writer_add_null(list, "file");
        return;
    }
    const struct site_entry *entry = trace->entry;
    const struct site_file *file = site_entry_file(entry, (int)trace->coding);
    const char *cache = trace->cache != SITE_CACHE_FITS || trace->headless ? "none"
                        : entry->cache.descriptors > 0                     ? "descriptor"
                                                                           : "memory";
    struct json_writer object = json_writer_begin(list, "file", '{');
    json_writer_add_span(&object, "type", site_entry_type(entry));
    json_writer_add_number(&object, "size", (uint64_t)file->size);
    json_writer_next(&object, "modified_ns");
    fprintf(list->out, "%lld", (long long)modified_ns_of(trace, file));
    add_or_null(&object, "encoding", http_accept_coding_name(trace->coding));
    add_or_null(&object, "etag", site_file_etag(file));
    json_writer_add_bool(&object, "fallback", trace->fallback);
    json_writer_add_text(&object, "cache", cache);
    json_writer_end(&object, '}');
}

static void add_steps(struct json_writer *list, const struct trace *t)
{
    struct json_writer steps = json_writer_begin(list, "steps", '[');
    for (unsigned i = 0; i < t->count; i++) {
        struct json_writer step = json_writer_begin(&steps, NULL, '{');
        json_writer_add_text(&step, "about", t->lines[i].about);
        json_writer_add_text(&step, "text", t->lines[i].text);
        json_writer_end(&step, '}');
    }
    json_writer_end(&steps, ']');
}

/* Adds the status and the fields of a head. */
static void add_answer(struct json_writer *list, struct span head)
{
    struct span line = SPAN("HTTP/1.1 000");
    (void)trace_next_field(&head, &line);
    json_writer_next(list, "status");
    fprintf(list->out, "%.*s", 3, line.at + sizeof("HTTP/1.1 ") - 1);
    struct json_writer lines = json_writer_begin(list, "head", '[');
    while (trace_next_field(&head, &line))
        json_writer_add_span(&lines, NULL, line);
    json_writer_end(&lines, ']');
}

static void add_agreement(struct json_writer *list, const struct tls_agreement *agreed)
{
    if (!agreed->protocol) {
        json_writer_add_null(list, "tls");
        return;
    }
    struct json_writer object = json_writer_begin(list, "tls", '{');
    json_writer_add_text(&object, "protocol", agreed->protocol);
    json_writer_add_text(&object, "cipher", agreed->cipher);
    json_writer_add_text(&object, "group", agreed->group);
    json_writer_end(&object, '}');
}

static void add_live(struct json_writer *list, const struct trace *t)
{
    struct span head = span_of(t->answer->head, t->answer->head_len);
    struct span live = span_of(t->live.head, t->live.head_len);
    if (!t->live.asked) {
        json_writer_add_null(list, "live");
        return;
    }
    struct json_writer object = json_writer_begin(list, "live", '{');
    json_writer_add_number(&object, "pid", (uint64_t)t->live.pid);
    json_writer_add_text(&object, "url", t->live.url);
    json_writer_add_bool(&object, "same", trace_same(head, live));
    add_answer(&object, live);
    add_agreement(&object, &t->live.agreed);
    json_writer_end(&object, '}');
}

void trace_print_json(const struct trace *t, FILE *out)
{
    const struct http_target *target = &t->answer->trace.target;
    bool has_path = target->fault == HTTP_FAULT_NONE;
    struct json_writer top = json_writer_open(out, '{');
    json_writer_add_number(&top, "schema", SCHEMA);
    add_request_object(&top, t);
    add_or_null(&top, "path", has_path ? target->path : span_of(NULL, 0));
    add_site_object(&top, t);
    add_steps(&top, t);
    add_file_object(&top, t);
    add_answer(&top, span_of(t->answer->head, t->answer->head_len));
    add_or_null(&top, "cause", span_text(t->cause));
    add_live(&top, t);
    json_writer_end(&top, '}');
    fputc('\n', out);
}
