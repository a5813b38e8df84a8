/* SPDX-License-Identifier: MIT
 *
 * Sentences about the file that is sent: its form, validators, conditions, ranges, and how the
 * cache holds it.
 */
#include "trace/trace.h"

#include "model/model.h"
#include "server/compression.h"
#include "site/compress.h"
#include "site/content.h"

static const struct site_file *file_of(const struct trace *t)
{
    return site_entry_file(t->answer->trace.entry, (int)t->answer->trace.coding);
}

static bool has_field(const struct trace *t, enum http_field field)
{
    return http_request_has(&t->answer->trace.request, field);
}

static void explain_encoding(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    struct span accepted = trace_field(t, HTTP_FIELD_ACCEPT_ENCODING);
    struct span name = http_accept_coding_name(trace->coding);
    if (!trace->entry->negotiable) {
        trace_add(t, "encoding", "none: %s",
                  t->site->precompressed ? "the file has no stored form that can be sent"
                                         : "precompressed = off");
        return;
    }
    if (!has_field(t, HTTP_FIELD_ACCEPT_ENCODING))
        trace_add(t, "encoding", "none: the request has no Accept-Encoding");
    else if (trace->coding == HTTP_CODING_IDENTITY)
        trace_add(t, "encoding", "none: Accept-Encoding `%.*s` prefers the plain file",
                  (int)accepted.len, accepted.at);
    else
        trace_add(t, "encoding",
                  "%.*s: of the stored forms, Accept-Encoding `%.*s` prefers this one",
                  (int)name.len, name.at, (int)accepted.len, accepted.at);
}

/* What the running server does beyond this answer, which is that of a server just started. */
static void explain_compression(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct site_entry *entry = trace->entry;
    const unsigned long long size = entry->plain->size;
    char why[MODEL_WHY_MAX], codings[SERVER_COMPRESSION_CODINGS_MAX];
    const enum server_compression of =
        server_compression_of(t->config, t->site, model_choose(span_text(t->config->model), why));
    if (of != SERVER_COMPRESSION_ON) {
        trace_add(t, "compress", "no, because %s", server_compression_reason(of));
    } else if (entry->variants != 1u << SITE_PLAIN) {
        trace_add(t, "compress", "no, because the file has a stored form");
    } else if (!site_compress_suits_type(site_entry_type(entry))) {
        trace_add(t, "compress", "no, because files of this type hardly become smaller");
    } else if (!site_compress_suits(site_entry_type(entry), size)) {
        trace_add(t, "compress", "no, because the file has %llu bytes; the limits are %d and %d",
                  size, SITE_COMPRESS_LEAST, SITE_COMPRESS_MOST);
    } else if (trace->no_transform) {
        trace_add(t, "compress", "no, because the Cache-Control of a rule says no-transform");
    } else if (trace->wanted == 0) {
        server_compression_codings(codings, false);
        trace_add(t, "compress", "with %s, but this request takes the plain file", codings);
    } else {
        const struct span name =
            http_accept_coding_name((enum http_coding)__builtin_ctz(trace->wanted));
        trace_add(t, "compress",
                  "with %.*s, once in each worker: the first such request gets the plain file, "
                  "later ones get the compressed file from the cache",
                  (int)name.len, name.at);
    }
}

/* Why an open file without a date has no tag in this answer. */
static const char *untagged_reason(const struct trace *t, const struct site_file *file)
{
    char why[MODEL_WHY_MAX];
    const struct model *model = model_choose(span_text(t->config->model), why);
    if (strcmp(t->site->etag, "time") == 0)
        return "etag = time";
    if (file->size > SITE_CONTENT_LARGEST)
        return "the file is too large to be read for an ETag";
    if (file->size <= SITE_CONTENT_AT_ONCE)
        return "the file has just changed";
    if (!server_compression_makes_tags(t->config, model))
        return "the model, compress-cpu or cache-size does not let the server read it for an ETag";
    return "the server reads it for an ETag after the first request";
}

static void explain_validators(struct trace *t)
{
    const struct site_file *file = file_of(t);
    const struct span etag = site_file_etag(file);
    const bool dated = site_file_last_modified_s(file) >= 0;
    if (etag.len > 0)
        trace_add(t, "validators", "ETag %.*s, from %s%s", (int)etag.len, etag.at,
                  !file->open || ((const struct site_open_file *)file)->changed_ns != 0
                      ? "the content"
                      : "size and time",
                  dated ? ", and Last-Modified"
                        : "; no Last-Modified: the file's time is not a real date");
    else if (dated)
        trace_add(t, "validators", "Last-Modified; no ETag, because the file has just changed");
    else
        trace_add(t, "validators", "none: the file's time is not a real date, and %s",
                  untagged_reason(t, file));
}

static void explain_markdown(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct span accept = trace_field(t, HTTP_FIELD_ACCEPT);
    const struct span path = site_entry_markdown(trace->entry);
    if (trace->markdown)
        trace_add(t, "markdown", "yes: Accept `%.*s` prefers text/markdown to text/html",
                  (int)accept.len, accept.at);
    else if (trace->entry->has_markdown && !trace->entry->html_only)
        trace_add(t, "markdown", "no: %.*s is for clients whose Accept prefers text/markdown",
                  (int)path.len, path.at);
}

/* The first field that could have decided, in the order of evaluation. */
static enum http_field condition_of(const struct trace *t, bool failed)
{
    if (failed)
        return has_field(t, HTTP_FIELD_IF_MATCH) ? HTTP_FIELD_IF_MATCH
                                                 : HTTP_FIELD_IF_UNMODIFIED_SINCE;
    return has_field(t, HTTP_FIELD_IF_NONE_MATCH) ? HTTP_FIELD_IF_NONE_MATCH
                                                  : HTTP_FIELD_IF_MODIFIED_SINCE;
}

static void explain_conditions(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    bool failed = trace->precondition == HTTP_ANSWER_FAILED;
    enum http_field field = condition_of(t, failed);
    struct span value = trace_field(t, field);
    switch (trace->precondition) {
    case HTTP_PROCEED:
        if (has_field(t, HTTP_FIELD_IF_MATCH) || has_field(t, HTTP_FIELD_IF_NONE_MATCH) ||
            has_field(t, HTTP_FIELD_IF_MODIFIED_SINCE) ||
            has_field(t, HTTP_FIELD_IF_UNMODIFIED_SINCE))
            trace_add(t, "conditions", "they do not change the answer");
        break;
    case HTTP_IGNORE_RANGE:
        trace_add(t, "conditions",
                  "If-Range does not match this version, so the whole file is sent");
        break;
    case HTTP_ANSWER_NOT_MODIFIED:
        if (field == HTTP_FIELD_IF_NONE_MATCH)
            trace_set_cause(t,
                            "If-None-Match `%.*s` names the ETag, so the client has this version",
                            (int)value.len, value.at);
        else
            trace_set_cause(t, "not modified since `%.*s`", (int)value.len, value.at);
        break;
    case HTTP_ANSWER_FAILED:
        if (field == HTTP_FIELD_IF_MATCH)
            trace_set_cause(t, "If-Match `%.*s` does not name the ETag", (int)value.len, value.at);
        else
            trace_set_cause(t, "modified since `%.*s`", (int)value.len, value.at);
        break;
    }
}

static void explain_range(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    struct span value = trace_field(t, HTTP_FIELD_RANGE);
    unsigned long long size = file_of(t)->size;
    int len = (int)value.len;
    switch (trace->range) {
    case HTTP_RANGE_IGNORE:
        trace_add(t, "range",
                  "`%.*s` is ignored: it is malformed, not in bytes, or has too many ranges", len,
                  value.at);
        break;
    case HTTP_RANGE_SATISFIABLE:
        trace_add(t, "range", "`%.*s` of %llu bytes: %u part%s", len, value.at, size,
                  trace->ranges.count, trace->ranges.count == 1 ? "" : "s");
        break;
    case HTTP_RANGE_UNSATISFIABLE:
        trace_set_cause(t, "the range `%.*s` is outside the file, which has %llu bytes", len,
                        value.at, size);
        break;
    }
}

static void explain_cache(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct site_cache_entry *cached = &trace->entry->cache;
    unsigned long long cost = cached->size_bytes;
    unsigned long long most = t->config->cache_size_bytes / SITE_CACHE_ENTRY_SHARE;
    if (trace->headless) {
        trace_add(t, "cache", "not kept: the head of its answer is too long");
        return;
    }
    switch (trace->cache) {
    case SITE_CACHE_FITS:
        if (cached->descriptors == 0)
            trace_add(t, "cache", "kept in memory: %llu bytes with all forms and heads", cost);
        else
            trace_add(t, "cache", "kept as %u open file%s: larger than cache-file-max, %llu bytes",
                      cached->descriptors, cached->descriptors == 1 ? "" : "s",
                      (unsigned long long)t->config->cache_file_max_bytes);
        break;
    case SITE_CACHE_OFF:
        trace_add(t, "cache",
                  "not kept: the cache is off, because cache-size or cache-entries is 0");
        break;
    case SITE_CACHE_TOO_LARGE:
        trace_add(t, "cache",
                  "not kept: it takes %llu bytes, and an entry may take %llu, an eighth of "
                  "cache-size",
                  cost, most);
        break;
    case SITE_CACHE_TOO_MANY_FILES:
        trace_add(t, "cache", "not kept: too few descriptors are left for open files");
        break;
    }
}

/* The links that are sent before the answer, if the site sends any. */
static void explain_hints(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    if (!t->site->early_hints)
        return;
    if (trace->hints > 0)
        trace_add(t, "early hints", "a 103 with %u link%s goes before the answer", trace->hints,
                  trace->hints == 1 ? "" : "s");
    else if (trace->hinted)
        trace_add(t, "early hints",
                  "none: no Link of the answer has rel=preload, modulepreload or preconnect");
    else
        trace_add(t, "early hints",
                  "none: only a 200 to GET over HTTP/2 with Sec-Fetch-Mode: navigate has them");
}

void trace_explain_file(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    struct span type = site_entry_type(trace->entry);
    if (trace_has_listing(trace)) {
        struct span etag = site_file_etag(trace->entry->plain);
        trace_add(t, "validators", "ETag %.*s, from the content", (int)etag.len, etag.at);
    } else {
        trace_add(t, "type", "%.*s, from the extension of the file's name", (int)type.len, type.at);
        explain_markdown(t);
        explain_encoding(t);
        explain_compression(t);
        explain_validators(t);
    }
    if (trace->conditional)
        explain_conditions(t);
    if (trace->ranged)
        explain_range(t);
    explain_hints(t);
    explain_cache(t);
    if (trace->headless)
        trace_set_cause(t, "the head of the answer is too long");
}
