/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS, driven as a model drives it, with a client in memory.
 */
#pragma once

#include "session/hosts.h"
#include "session/thread.h"
#include "session/tls.h"
#include "site/mime.h"
#include "support/secure.h"
#include "tls/selfsigned.h"
#include "tls/server.h"
#include "tls/tickets.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND    UINT64_C(1000000000)
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { BIG_SIZE = 300 * 1024, MIDDLE_SIZE = 40 * 1024 };

static struct {
    char root[64];
    struct site_mime *mime;
    struct site *site;
    struct session_site sites[1];
    struct log_access_sink log;
    struct tls_tickets tickets;
    struct session_shared shared;
    struct session_thread thread, other;
    uint64_t now_ns;
} world;

static inline void write_file(const char *name, size_t size, char fill)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, fill, size);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    free(bytes);
}

static inline void remove_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    (void)unlink(path);
}

static inline struct tls_server *make_server(void)
{
    static const char *const names[] = { "a", NULL };
    char folder[80];
    (void)snprintf(folder, sizeof(folder), "%s/tls", world.root);
    assert_int_equal(tls_tickets_open(&world.tickets, 1), 0);
    return secure_server(folder, names, &world.tickets);
}

static inline int make_world(void **state)
{
    (void)state;
    static const char *const index[] = { "index.html", NULL };
    static const struct site_options options = {
        .name = "test", .root = world.root, .index = index, .body_max = 64 * 1024
    };
    (void)snprintf(world.root, sizeof(world.root), "%s", "/tmp/tls_test.XXXXXX");
    if (!mkdtemp(world.root))
        return -1;
    write_file("small.html", 308, 's');
    write_file("middle.bin", MIDDLE_SIZE, 'm');
    write_file("big.bin", BIG_SIZE, 'b');
    world.mime = site_mime_new(NULL);
    const char *what;
    if (site_open(&world.site, &options, world.mime, &what) < 0)
        return -1;
    world.sites[0] = (struct session_site){ .site = world.site };
    if (log_access_open(&world.log, "off", LOG_COMBINED, NULL) < 0)
        return -1;
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 << 20, 100, 10 };
    world.shared = (struct session_shared){
        .sites = world.sites,
        .site_count = 1,
        .hosts = session_hosts_new(world.sites, 1),
        .cache = site_cache_new(limits, 2),
        .log = &world.log,
        .tls = make_server(),
        .header_timeout_ns = 10 * SECOND,
        .body_timeout_ns = 30 * SECOND,
        .idle_timeout_ns = 60 * SECOND,
        .send_timeout_ns = 20 * SECOND,
        .send_step_bytes = SESSION_SEND_STEP,
    };
    world.now_ns = 1000 * SECOND;
    if (!world.shared.tls || session_thread_start(&world.thread, &world.shared, 0) < 0 ||
        session_thread_start(&world.other, &world.shared, 1) < 0)
        return -1;
    session_thread_tick(&world.thread, world.now_ns, 1800000000);
    session_thread_tick(&world.other, world.now_ns, 1800000000);
    return 0;
}

static inline int end_world(void **state)
{
    (void)state;
    session_thread_stop(&world.thread);
    session_thread_stop(&world.other);
    tls_server_free(world.shared.tls);
    tls_tickets_close(&world.tickets);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    remove_file("small.html");
    remove_file("middle.bin");
    remove_file("big.bin");
    return rmdir(world.root);
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
    while (t->want == SESSION_WRITE)
        receive_some(t);
    assert_int_equal(fflush(t->received), 0);
}

static inline void feed_bytes(struct talk *t, struct span bytes)
{
    while (bytes.len > 0 && t->want == SESSION_READ) {
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
