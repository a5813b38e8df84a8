/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS, driven as a model drives it, with a client in memory.
 */
#pragma once

#include "session/tls.h"
#include "support/secure.h"
#include "tls/selfsigned.h"
#include "tls/server.h"
#include "tls/tickets.h"
#include "world.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

static struct tls_tickets tickets;

static inline struct tls_server *make_server(void)
{
    static const char *const names[] = { "a", NULL };
    char folder[80];
    (void)snprintf(folder, sizeof(folder), "%s/tls", world.root);
    assert_int_equal(tls_tickets_open(&tickets, 1), 0);
    return secure_server(folder, names, &tickets);
}

static inline int make_secured_world(void **state)
{
    (void)state;
    if (make_world() < 0)
        return -1;
    world.shared.tls = make_server();
    return world.shared.tls ? start_world() : -1;
}

static inline int end_secured_world(void **state)
{
    (void)state;
    tls_server_free(world.shared.tls);
    tls_tickets_close(&tickets);
    return end_world();
}

/* ---- a connection ---- */

/* Called before and after each call of the session. NULL: by no test. */
static void (*around_call)(bool begins);

static inline void enter_call(bool begins)
{
    if (around_call)
        around_call(begins);
}

struct talk {
    struct session session;
    struct secure_client client;
    unsigned want;
    size_t step; /* the most bytes that leave with one send */
    char *bytes; /* that the server has sent */
    size_t len;
    FILE *received;
};

static inline void receive_some(struct talk *t)
{
    struct session_out out = session_output(&t->session);
    size_t sent = 0;
    assert_true(out.count > 0);
    assert_true(out.file_fd < 0);
    for (unsigned i = 0; i < out.count && sent < t->step; i++) {
        struct span part = span_first(out.piece[i], t->step - sent);
        assert_true(part.len > 0);
        assert_int_equal(fwrite(part.at, 1, part.len, t->received), part.len);
        sent += part.len;
    }
    enter_call(true);
    t->want = session_sent(&t->session, sent, world.now_ns);
    enter_call(false);
}

static inline void receive_all(struct talk *t)
{
    while (t->want & SESSION_WRITE)
        receive_some(t);
    assert_int_equal(fflush(t->received), 0);
}

static inline void feed_bytes(struct talk *t, struct span bytes)
{
    while (bytes.len > 0 && t->want & SESSION_READ) {
        struct span part = span_first(bytes, session_room(&t->session));
        enter_call(true);
        t->want = session_feed(&t->session, part, world.now_ns);
        enter_call(false);
        bytes = span_skip(bytes, part.len);
        if (bytes.len > 0)
            receive_all(t);
    }
}

/* What the client writes to a stream is fed. */
static inline FILE *open_pipe(char **ret_bytes, size_t *ret_len)
{
    FILE *out = open_memstream(ret_bytes, ret_len);
    assert_non_null(out);
    return out;
}

static inline void feed_pipe(struct talk *t, FILE *out, char **bytes, const size_t *len)
{
    assert_int_equal(fclose(out), 0);
    feed_bytes(t, span_of(*bytes, *len));
    free(*bytes);
}

static inline void open_talk(struct talk *t)
{
    *t = (struct talk){ .want = SESSION_READ, .step = SIZE_MAX };
    t->received = open_memstream(&t->bytes, &t->len);
    assert_non_null(t->received);
    struct session_origin origin = { .peer = { .family = 4 }, .tls = true };
    session_open(&t->session, &world.thread, origin, world.now_ns);
    assert_true(secure_open(&t->client));
}

static inline void shake(struct talk *t)
{
    enum tls_result result;
    do {
        char *bytes;
        size_t len;
        FILE *out = open_pipe(&bytes, &len);
        result = secure_shake_hands(&t->client, span_of(t->bytes, t->len), out);
        assert_int_not_equal(result, TLS_FAILED);
        feed_pipe(t, out, &bytes, &len);
        receive_all(t);
    } while (result == TLS_MORE);
    assert_int_equal(t->want, SESSION_READ);
}

static inline void ask(struct talk *t, const char *text)
{
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    assert_true(secure_seal(&t->client, span_text(text), TLS_RECORD_BYTES, out));
    feed_pipe(t, out, &bytes, &len);
}

/* The plaintext of all that has arrived, which the caller frees. */
static inline char *answer_of(struct talk *t, size_t *ret_len)
{
    char *plain;
    FILE *out = open_pipe(&plain, ret_len);
    assert_int_equal(fflush(t->received), 0);
    assert_true(secure_unseal(&t->client, span_of(t->bytes, t->len), out));
    t->client.taken = t->len;
    assert_int_equal(fclose(out), 0);
    return plain;
}

static inline void close_talk(struct talk *t)
{
    enter_call(true);
    session_close(&t->session);
    enter_call(false);
    secure_close(&t->client);
    assert_int_equal(fclose(t->received), 0);
    free(t->bytes);
}
