/* SPDX-License-Identifier: MIT */
#include "session/trace.h"

#include "base/buf.h"
#include "session/answer.h"
#include "session/hosts.h"
#include "session/http1.h"
#include "session/http2.h"

void session_trace_begin(struct session_thread *thread, struct session_trace *trace)
{
    const struct session_shared *shared = thread->shared;
    thread->trace = trace;
    for (size_t i = 0; i < shared->site_count; i++)
        site_trace_begin(shared->sites[i].site, trace ? &trace->steps : NULL);
}

unsigned session_trace_feed_decrypted(struct session *s, struct span in, bool http2,
                                      uint64_t now_ns)
{
    s->tls_wanted = true;
    if (http2 && !s->http2 && !session_http2_begin(s, now_ns))
        return SESSION_CLOSE;
    return http2 ? session_http2_feed(s, in, now_ns) : session_http1_feed(s, in, now_ns);
}

void session_trace_done(struct session_trace *trace)
{
    if (trace->entry)
        site_cache_release(&trace->entry->cache);
    trace->entry = NULL;
}

static struct span keep(struct buf *text, struct span from)
{
    struct span kept = span_of(text->at + text->len, from.len);
    buf_add(text, from);
    return text->overflow ? span_of(NULL, 0) : kept;
}

void session_trace_target(const struct session_exchange *x)
{
    struct session_trace *trace = x->thread->trace;
    struct buf text = buf_over(trace->text, sizeof(trace->text));
    trace->request = *x->request;
    trace->target = x->target;
    trace->target.host = keep(&text, x->target.host);
    trace->target.path = keep(&text, x->target.path);
    trace->target.query = keep(&text, x->target.query);
    trace->resolved = true;
    trace->site = x->site;
    if (x->site)
        trace->rule = session_hosts_rule(x->thread->shared->hosts, x->target.host);
}

void session_trace_entry(const struct session_exchange *x, struct site_entry *entry, bool whole)
{
    struct session_trace *trace = x->thread->trace;
    session_trace_done(trace);
    site_cache_hold(&entry->cache);
    trace->entry = entry;
    trace->headless = !whole;
    trace->cache = site_cache_judge(x->thread->shared->cache, &entry->cache);
}
