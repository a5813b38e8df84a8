/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS, driven as a model drives it, with a client in memory. The conformance cases
 * run over TLS, too. This tests what they cannot: short writes of large answers, files that change,
 * deadlines, alerts, key updates and sessions that change threads.
 */
#include "session/tls.h"

#include "session/hosts.h"
#include "session/thread.h"
#include "site/mime.h"
#include "support/secure.h"
#include "tls/tickets.h"

#include <fcntl.h>
#include <malloc.h>
#include <openssl/crypto.h>
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

static void write_file(const char *name, size_t size, char fill)
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

static void remove_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    (void)unlink(path);
}

static struct tls_server *make_server(void)
{
    static const char *const names[] = { "a", NULL };
    char folder[80];
    (void)snprintf(folder, sizeof(folder), "%s/tls", world.root);
    assert_int_equal(tls_tickets_open(&world.tickets, 1), 0);
    return secure_server(folder, names, &world.tickets);
}

static int make_world(void **state)
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

static int end_world(void **state)
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

struct talk {
    struct session session;
    struct secure_client client;
    unsigned want;
    size_t step; /* the most bytes that leave with one send */
    char *bytes; /* that the server has sent */
    size_t len;
    FILE *received;
};

static void receive_some(struct talk *t)
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
    t->want = session_sent(&t->session, sent, world.now_ns);
}

static void receive_all(struct talk *t)
{
    while (t->want == SESSION_WRITE)
        receive_some(t);
    assert_int_equal(fflush(t->received), 0);
}

static void feed_bytes(struct talk *t, struct span bytes)
{
    while (bytes.len > 0 && t->want == SESSION_READ) {
        struct span part = span_first(bytes, session_room(&t->session));
        t->want = session_feed(&t->session, part, world.now_ns);
        bytes = span_skip(bytes, part.len);
        if (bytes.len > 0)
            receive_all(t);
    }
}

/* What the client writes to a stream is fed. */
static FILE *open_pipe(char **ret_bytes, size_t *ret_len)
{
    FILE *out = open_memstream(ret_bytes, ret_len);
    assert_non_null(out);
    return out;
}

static void feed_pipe(struct talk *t, FILE *out, char **bytes, const size_t *len)
{
    assert_int_equal(fclose(out), 0);
    feed_bytes(t, span_of(*bytes, *len));
    free(*bytes);
}

static void open_talk(struct talk *t)
{
    *t = (struct talk){ .want = SESSION_READ, .step = SIZE_MAX };
    t->received = open_memstream(&t->bytes, &t->len);
    assert_non_null(t->received);
    struct session_origin origin = { .peer = { .family = 4 }, .tls = true };
    session_open(&t->session, &world.thread, origin, world.now_ns);
    assert_true(secure_open(&t->client));
}

static void shake(struct talk *t)
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

static void ask(struct talk *t, const char *text)
{
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    assert_true(secure_seal(&t->client, span_text(text), TLS_RECORD_BYTES, out));
    feed_pipe(t, out, &bytes, &len);
}

/* The plaintext of all that has arrived, which the caller frees. */
static char *answer_of(struct talk *t, size_t *ret_len)
{
    char *plain;
    FILE *out = open_pipe(&plain, ret_len);
    assert_int_equal(fflush(t->received), 0);
    assert_true(secure_unseal(&t->client, span_of(t->bytes, t->len), out));
    t->client.taken = t->len;
    assert_int_equal(fclose(out), 0);
    return plain;
}

static void close_talk(struct talk *t)
{
    session_close(&t->session);
    secure_close(&t->client);
    assert_int_equal(fclose(t->received), 0);
    free(t->bytes);
}

/* The last record that has arrived is an alert with this description. */
static void assert_alert(struct talk *t, int description)
{
    size_t len;
    assert_int_equal(fflush(t->received), 0);
    t->client.connection.in = span_of(t->bytes + t->client.taken, t->len - t->client.taken);
    char byte;
    assert_int_equal(tls_connection_read(&t->client.connection, &byte, 1, &len), TLS_FAILED);
    assert_int_equal(ERR_GET_REASON(t->client.connection.error),
                     SSL_AD_REASON_OFFSET + description);
}

/* ---- tests ---- */

static void short_writes_give_the_same_bytes(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET("/small.html"),
        GET("/middle.bin"),
        GET("/big.bin"),
        GET("/small.html") GET("/big.bin") GET("/middle.bin") GET("/small.html"),
    };
    static const size_t sizes[] = { 308, MIDDLE_SIZE, BIG_SIZE, 616 + MIDDLE_SIZE + BIG_SIZE };
    static const size_t steps[] = { SIZE_MAX, 1024, 16406, 65536, 17 };
    for (size_t i = 0; i < 4; i++)
        for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
            struct talk t;
            open_talk(&t);
            shake(&t);
            t.step = steps[step];
            ask(&t, requests[i]);
            assert_int_equal(t.want, SESSION_WRITE);
            receive_all(&t);
            assert_int_equal(t.want, SESSION_READ);
            size_t len, bodies = 0;
            char *plain = answer_of(&t, &len);
            for (size_t at = 0; at < len; at++)
                bodies += plain[at] == 'b' || plain[at] == 'm' || plain[at] == 's';
            assert_true(bodies >= sizes[i] && bodies < sizes[i] + 200);
            free(plain);
            close_talk(&t);
        }
}

static void an_idle_connection_holds_no_buffer(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    assert_null(t.session.tls);
    shake(&t);
    ask(&t, GET("/small.html"));
    receive_all(&t);
    assert_true(session_idle(&t.session));
    assert_null(t.session.input);
    assert_null(t.session.output);
    assert_null(t.session.tls->kept);
    assert_true(tls_wire_is_empty(&t.session.tls->connection.wire));
    close_talk(&t);
}

/* A buffer for records is larger than any other memory of OpenSSL. */
static size_t buffers;

static bool is_buffer(void *memory)
{
    return memory && malloc_usable_size(memory) >= TLS_RECORD_BYTES;
}

static void *count_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    void *memory = malloc(size);
    buffers += is_buffer(memory);
    return memory;
}

static void *count_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    bool was_buffer = is_buffer(old);
    void *memory = realloc(old, size);
    if (memory)
        buffers = buffers - was_buffer + is_buffer(memory);
    return memory;
}

static void count_free(void *memory, const char *file, int line)
{
    (void)file, (void)line;
    buffers -= is_buffer(memory);
    free(memory);
}

static void the_first_answer_leaves_no_buffer_in_openssl(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    assert_true(secure_seal(&t.client, SPAN(GET("/small.html")), TLS_RECORD_BYTES, out));
    size_t before = buffers;
    feed_pipe(&t, out, &bytes, &len);
    receive_all(&t);
    assert_true(session_idle(&t.session));
    assert_int_equal(buffers, before);
    close_talk(&t);
}

static void a_small_answer_is_one_record(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    ask(&t, GET("/small.html"));
    receive_all(&t);
    size_t before = t.len, records = 0;
    ask(&t, GET("/small.html") GET("/small.html"));
    struct session_out out = session_output(&t.session);
    assert_int_equal(out.count, 1);
    receive_all(&t);
    for (size_t at = before; at < t.len; records++)
        at += 5 + ((size_t)(unsigned char)t.bytes[at + 3] << 8 | (unsigned char)t.bytes[at + 4]);
    assert_int_equal(records, 1);
    close_talk(&t);
}

static void a_large_answer_waits_in_little_memory(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    ask(&t, GET("/big.bin"));
    while (t.want == SESSION_WRITE) {
        size_t chunks = 0;
        for (struct tls_chunk *c = t.session.tls->connection.wire.first; c; c = c->next)
            chunks++;
        assert_true(chunks <= 5);
        receive_some(&t);
    }
    close_talk(&t);
}

static void a_file_that_changes_is_never_completed(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    ask(&t, GET("/big.bin"));
    write_file("big.bin", BIG_SIZE, 'B');
    receive_all(&t);
    assert_int_equal(t.want, SESSION_CLOSE);
    size_t len;
    char *plain = answer_of(&t, &len);
    assert_true(len < BIG_SIZE);
    free(plain);
    close_talk(&t);
    write_file("big.bin", BIG_SIZE, 'b');
}

static void a_session_moves_between_threads(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    t.step = 5000;
    ask(&t, GET("/big.bin") GET("/small.html"));
    while (t.want == SESSION_WRITE) {
        receive_some(&t);
        session_hold(&t.session);
        bool first = t.session.thread == &world.thread;
        session_move(&t.session, first ? &world.other : &world.thread);
    }
    assert_int_equal(t.want, SESSION_READ);
    session_move(&t.session, &world.thread);
    size_t len;
    free(answer_of(&t, &len));
    assert_true(len > BIG_SIZE + 308);
    close_talk(&t);
}

static void a_handshake_has_the_deadline_of_a_head(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    feed_bytes(&t, SPAN("\x16\x03\x01\x02\x00\x01"));
    assert_int_equal(t.want, SESSION_READ);
    assert_false(session_idle(&t.session));
    assert_int_equal(session_deadline_ns(&t.session), world.now_ns + 10 * SECOND);
    world.now_ns += 10 * SECOND;
    assert_int_equal(session_expire(&t.session, world.now_ns), SESSION_CLOSE);
    close_talk(&t);
}

static void an_idle_connection_ends_with_close_notify(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    ask(&t, GET("/small.html"));
    receive_all(&t);
    world.now_ns += 60 * SECOND;
    t.want = session_expire(&t.session, world.now_ns);
    assert_int_equal(t.want, SESSION_WRITE);
    receive_all(&t);
    assert_int_equal(t.want, SESSION_CLOSE);
    size_t len;
    char byte[1000];
    t.client.connection.in = span_of(t.bytes + t.client.taken, t.len - t.client.taken);
    assert_int_equal(tls_connection_read(&t.client.connection, byte, sizeof(byte), &len),
                     TLS_ENDED);
    close_talk(&t);
}

static void a_broken_record_gets_an_alert(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    feed_bytes(&t, SPAN("\x17\x03\x03\x00\x20"
                        "0123456789abcdef0123456789abcdef"));
    assert_int_equal(t.want, SESSION_WRITE);
    receive_all(&t);
    assert_int_equal(t.want, SESSION_HALF_CLOSE);
    assert_alert(&t, SSL_AD_BAD_RECORD_MAC);
    close_talk(&t);
}

static void plain_http_is_answered_in_plain_http(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    feed_bytes(&t, SPAN(GET("/small.html")));
    receive_all(&t);
    assert_int_equal(t.want, SESSION_HALF_CLOSE);
    assert_non_null(memmem(t.bytes, t.len, "HTTP/1.1 400 ", 13));
    assert_non_null(memmem(t.bytes, t.len, "https://", 8));
    close_talk(&t);
}

static void update_keys(struct talk *t, unsigned times)
{
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(SSL_key_update(t->client.connection.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(t->client.connection.ssl), 1);
        secure_flush(&t->client, out);
    }
    feed_pipe(t, out, &bytes, &len);
}

static void keys_may_be_updated_but_not_endlessly(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    shake(&t);
    for (unsigned i = 0; i < 20; i++) {
        update_keys(&t, 5);
        ask(&t, GET("/small.html"));
        receive_all(&t);
        assert_int_equal(t.want, SESSION_READ);
    }
    update_keys(&t, 500);
    receive_all(&t);
    assert_int_not_equal(t.want, SESSION_READ);
    close_talk(&t);
}

static void the_end_of_input_ends_a_handshake(void **state)
{
    (void)state;
    struct talk t;
    open_talk(&t);
    feed_bytes(&t, SPAN("\x16\x03\x01\x02"));
    assert_int_equal(session_feed(&t.session, SPAN(""), world.now_ns), SESSION_CLOSE);
    close_talk(&t);
}

int main(void)
{
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_writes_give_the_same_bytes),
        cmocka_unit_test(an_idle_connection_holds_no_buffer),
        cmocka_unit_test(the_first_answer_leaves_no_buffer_in_openssl),
        cmocka_unit_test(a_small_answer_is_one_record),
        cmocka_unit_test(a_large_answer_waits_in_little_memory),
        cmocka_unit_test(a_file_that_changes_is_never_completed),
        cmocka_unit_test(a_session_moves_between_threads),
        cmocka_unit_test(a_handshake_has_the_deadline_of_a_head),
        cmocka_unit_test(an_idle_connection_ends_with_close_notify),
        cmocka_unit_test(a_broken_record_gets_an_alert),
        cmocka_unit_test(plain_http_is_answered_in_plain_http),
        cmocka_unit_test(keys_may_be_updated_but_not_endlessly),
        cmocka_unit_test(the_end_of_input_ends_a_handshake),
    };
    return cmocka_run_group_tests(tests, make_world, end_world);
}
