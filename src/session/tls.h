/* SPDX-License-Identifier: MIT
 *
 * TLS inside a session. Encrypted bytes that arrive are decrypted into a buffer of the thread, and
 * HTTP/1.1 (session/http1.h) takes them from there. Its output is sealed into records, which the
 * session keeps until they are sent. The models see encrypted bytes only.
 *
 * Private to session/.
 */
#pragma once

#include "session/session.h"
#include "tls/connection.h"

struct session_tls {
    struct tls_connection connection;
    struct tls_agreement agreed;
    uint64_t began_ns; /* when the first byte of the handshake arrived */
    size_t site;       /* its number, chosen by the client's server name */
    bool established;  /* the handshake is complete */
    bool failed;       /* the connection ends when the wire is sent */
    bool ended;        /* the wire has close_notify */
    bool peer_ended;   /* the client has sent close_notify */
    bool answered;     /* an answer has been sealed */
    size_t kept_len;
    char *kept; /* encrypted bytes that wait until the output is sent; NULL: none */
};

/* The same contract as the functions of session.h, for a connection that came through a TLS
 * listener. */
unsigned session_tls_feed(struct session *s, struct span in, uint64_t now_ns);
struct session_out session_tls_output(const struct session *s);
unsigned session_tls_sent(struct session *s, size_t bytes, uint64_t now_ns);

unsigned session_tls_drain(struct session *s, uint64_t now_ns);
unsigned session_tls_expire(struct session *s, uint64_t now_ns);
unsigned session_tls_resume(struct session *s, uint64_t now_ns);

/* Whether encrypted bytes of a connection with TLS wait to be sent. */
bool session_tls_has_output(const struct session *s);

/* Whether encrypted input waits until there is space for what it holds. */
static inline bool session_tls_keeps_input(const struct session *s)
{
    return s->tls->kept_len > 0;
}

void session_tls_close(struct session *s);
