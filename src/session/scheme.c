/* SPDX-License-Identifier: MIT */
#include "session/scheme.h"

#include "base/buf.h"
#include "base/hosts.h"
#include "session/forwarded.h"
#include "session/tls.h"
#include "session/trace.h"
#include "tls/server.h"

enum { ORIGIN_MAX = HOSTS_NAME_MAX + sizeof("https://:65535"), HTTPS_PORT = 443 };

/* An issuer of certificates fetches these files over http (RFC 8555 section 8.3). */
#define CHALLENGES SPAN("/.well-known/acme-challenge/")

/* Whether the client reuses a connection for a site that its certificate does not cover. The client
 * then connects again, with the name of that site (RFC 9110 section 15.5.20). */
static bool is_misdirected(const struct session_exchange *x)
{
    char lower[HOSTS_NAME_MAX + 1]; /* and a final dot */
    const struct session_shared *shared = x->thread->shared;
    const struct session_tls *tls = x->session->tls;
    struct span host = x->target.host;
    if (!tls || host.len == 0 || &shared->sites[tls->site] == x->site)
        return false;
    if (host.len > sizeof(lower))
        return true;
    for (size_t i = 0; i < host.len; i++)
        lower[i] = ascii_lower(host.at[i]);
    return !tls_server_covers(shared->tls, tls->site, span_of(lower, host.len));
}

/* Whether the plain request is answered by a redirect. `OPTIONS *` has no path to redirect. */
static bool is_redirected(const struct session_exchange *x)
{
    return x->site->https_port > 0 && !x->secure && x->target.host.len > 0 &&
           x->target.path.at[0] == '/' && !span_starts(x->target.path, CHALLENGES);
}

/* 308 and not 301: the client repeats the request with the same method (RFC 9110 section
 * 15.4.9). A proxy that names the scheme has the port of https. A cache in that proxy could send
 * this answer to clients over https, which then would request it again and again. Vary forbids
 * that. */
static void redirect_to_https(struct session_exchange *x)
{
    char storage[ORIGIN_MAX];
    struct buf origin = buf_over(storage, sizeof(storage));
    const uint16_t port = x->scheme_named ? HTTPS_PORT : x->site->https_port;
    struct span vary = SPAN("");
    if (x->scheme_named)
        vary = x->thread->shared->forwarding->standard ? SPAN("Vary: Forwarded\r\n")
                                                       : SPAN("Vary: X-Forwarded-Proto\r\n");
    buf_add(&origin, SPAN("https://"));
    buf_add(&origin, x->target.host);
    if (port != HTTPS_PORT) {
        buf_add_char(&origin, ':');
        buf_add_u64(&origin, port);
    }
    if (origin.overflow)
        session_answer_status(x, HTTP_BAD_REQUEST);
    else
        session_answer_redirect_to(x, buf_span(&origin), vary);
}

bool session_scheme_is_challenge(const struct session_exchange *x)
{
    return span_starts(x->target.path, CHALLENGES);
}

bool session_scheme_decides(const struct session_exchange *x)
{
    return is_misdirected(x) || is_redirected(x);
}

bool session_scheme_answers(struct session_exchange *x)
{
    bool misdirected = is_misdirected(x), redirected = is_redirected(x);
    session_trace_note(x, to_https, redirected);
    if (misdirected)
        session_answer_status(x, HTTP_MISDIRECTED_REQUEST);
    else if (redirected)
        redirect_to_https(x);
    return misdirected || redirected;
}
