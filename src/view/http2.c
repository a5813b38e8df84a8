/* SPDX-License-Identifier: MIT */
#include "view/http2.h"

#include "view/window.h"

#include <inttypes.h>
#include <string.h>

/* The flood that was refused most often since the start. NULL: none was. */
static const struct stats_http2_fault_about *commonest_flood(const struct stats_snapshot *s)
{
    const struct stats_http2_fault_about *commonest = NULL;
    uint64_t most = 0;
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++) {
        uint64_t count = s->counter[STATS_HTTP2_FAULT_FIRST + i];
        if (count <= most || strcmp(stats_http2_faults[i].error, "ENHANCE_YOUR_CALM") != 0)
            continue;
        most = count;
        commonest = &stats_http2_faults[i];
    }
    return commonest;
}

/* A client that reloads a page fast may exceed a limit once. */
bool view_http2_floods(const struct view_window *w, struct view_verdict *out)
{
    enum { MANY = 10 };
    uint64_t floods = w->counter[STATS_http2_floods];
    if (floods == 0)
        return false;
    const struct stats_http2_fault_about *cause = commonest_flood(w->view->snapshot);
    out->gravity = floods < MANY ? VIEW_NOTE : VIEW_WARNING;
    view_verdict_say(out->text,
                     "%" PRIu64 " HTTP/2 connection%s ended in %.0f s, because the client exceeded "
                     "a limit",
                     floods, floods == 1 ? " was" : "s were", w->seconds);
    if (cause)
        view_verdict_say(out->why,
                         "a client floods this server, or has a fault. The commonest cause since "
                         "the start is `%s`: %s",
                         cause->name, cause->sentence);
    else
        view_verdict_say(out->why, "a client floods this server, or has a fault");
    view_verdict_say(out->cure,
                     "none is needed: such a connection costs little. To keep these clients out, "
                     "set `address-connection-rate` and `address-request-rate`, or block their "
                     "addresses");
    return true;
}

bool view_http2_streams_refused(const struct view_window *w, struct view_verdict *out)
{
    uint64_t refused = w->counter[STATS_http2_streams_refused];
    if (refused == 0)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text,
                     "%" PRIu64 " HTTP/2 stream%s refused in %.0f s, because the connection had as "
                     "many open as it may",
                     refused, refused == 1 ? " was" : "s were", w->seconds);
    view_verdict_say(out->why,
                     "clients open more streams than the server has announced, or before they "
                     "know the limit");
    view_verdict_say(out->cure,
                     "raise `http2-streams` if it is below 100. Honest clients try refused streams "
                     "again");
    return true;
}

/* A large file that a client takes slower than its window allows is normal. */
bool view_http2_stalls(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 100, PART = 5 }; /* a fifth of requests */
    uint64_t stalls = w->counter[STATS_http2_stalls];
    uint64_t requests = w->counter[STATS_requests_http_2];
    if (stalls < ENOUGH || stalls < requests / PART)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text,
                     "answers over HTTP/2 waited %" PRIu64 " times in %.0f s for the client to "
                     "open its flow-control windows, in %" PRIu64 " requests",
                     stalls, w->seconds, requests);
    view_verdict_say(out->why,
                     "clients take answers more slowly than the server sends them, or their "
                     "windows are small: one of 64 KiB allows 64 KiB in each round trip");
    view_verdict_say(out->cure,
                     "none on the server, because clients choose their windows. If clients hold "
                     "them closed on purpose, shorten `send-timeout` or set `send-rate`");
    return true;
}
