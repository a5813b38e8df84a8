/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS. The conformance cases run over TLS, too. This tests what they cannot: short
 * writes of large answers, files that change, deadlines, alerts, key updates and sessions that
 * change threads.
 */
#include "http2/client.h"
#include "http2/frame.h"
#include "secured.h"
#include "session/buffer.h"

#include <malloc.h>
#include <openssl/crypto.h>

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

static size_t unsent_bytes(const struct talk *t)
{
    size_t bytes = 0;
    for (const struct tls_chunk *c = t->session.tls->connection.wire.first; c; c = c->next)
        bytes += c->len - c->at;
    return bytes;
}

/* With HTTP/2 a session also takes input while its output waits. */
static void feed_without_receiving(struct talk *t, struct span bytes)
{
    while (bytes.len > 0) {
        assert_true(t->want & SESSION_READ);
        struct span part = span_first(bytes, session_room(&t->session));
        assert_true(part.len > 0);
        t->want = session_feed(&t->session, part, world.now_ns);
        bytes = span_skip(bytes, part.len);
    }
}

/* `text` in records of one byte, before each of which the client requests new keys. */
static void write_with_updates(struct talk *t, struct span text, unsigned updates, FILE *out)
{
    for (size_t at = 0; at < text.len; at++) {
        for (unsigned i = 0; i < updates; i++) {
            assert_int_equal(SSL_key_update(t->client.connection.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
            assert_int_equal(SSL_do_handshake(t->client.connection.ssl), 1);
        }
        assert_true(secure_seal(&t->client, span_of(text.at + at, 1), 1, out));
    }
}

/* The client gives the server the largest windows. */
static void begin_http2(struct talk *t)
{
    char bytes[128];
    size_t len;
    struct buf frames = buf_over(bytes, sizeof(bytes));
    open_talk(t);
    assert_true(secure_offer_http2(&t->client));
    shake(t);
    buf_add(&frames, HTTP2_FRAME_PREFACE);
    http2_frame_add(&frames, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                                   .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(&frames, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x7fffffff);
    http2_frame_add_window(&frames, 0, 0x7fffffff - HTTP2_WINDOW);
    char *sealed;
    FILE *out = open_pipe(&sealed, &len);
    assert_true(secure_seal(&t->client, buf_span(&frames), TLS_RECORD_BYTES, out));
    feed_pipe(t, out, &sealed, &len);
    receive_all(t);
    free(answer_of(t, &len));
}

static void requested_keys_wait_in_no_memory(void **state)
{
    (void)state;
    enum { PINGS = 20, UPDATES = 30, PING_BYTES = 17, UNSENT_MAX = 1024 };
    static const struct span ping = SPAN("\0\0\10\6\0\0\0\0\0abcdefgh");
    struct talk t;
    char *bytes;
    size_t len;
    begin_http2(&t);
    FILE *out = open_pipe(&bytes, &len);
    for (unsigned i = 0; i < PINGS; i++)
        write_with_updates(&t, ping, UPDATES, out);
    assert_int_equal(fclose(out), 0);
    feed_without_receiving(&t, span_of(bytes, len));
    free(bytes);
    assert_in_range(unsent_bytes(&t), 1, UNSENT_MAX);
    receive_all(&t);
    t.client.connection.messages = 0; /* it counts its own, too */
    char *plain = answer_of(&t, &len);
    assert_int_equal(len, PINGS * PING_BYTES);
    free(plain);
    close_talk(&t);
}

static void write_request(struct talk *t, uint32_t stream, const char *path, FILE *out)
{
    char head[128], bytes[256];
    struct buf frame = buf_over(bytes, sizeof(bytes));
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    frame.len = HTTP2_FRAME_HEAD;
    (void)http2_client_add_request(&frame, span_text(head), SPAN("https"), HTTP2_CLIENT_PLAIN);
    http2_frame_write(
        bytes, (struct http2_frame){ .length = (uint32_t)frame.len - HTTP2_FRAME_HEAD,
                                     .stream = stream,
                                     .type = HTTP2_FRAME_HEADERS,
                                     .flags = HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM });
    assert_true(secure_seal(&t->client, buf_span(&frame), TLS_RECORD_BYTES, out));
}

/* A frame of unknown type, with as many bytes as a record holds. */
static void write_unknown_frame(struct talk *t, FILE *out)
{
    static char bytes[TLS_RECORD_BYTES];
    http2_frame_write(
        bytes, (struct http2_frame){ .length = sizeof(bytes) - HTTP2_FRAME_HEAD, .type = 0xfa });
    assert_true(secure_seal(&t->client, span_of(bytes, sizeof(bytes)), TLS_RECORD_BYTES, out));
}

/* Bytes of files that the thread has read are valid during one call. */
static void assert_lends_nothing_of_the_thread(const struct talk *t)
{
    const struct session_buffer *out = t->session.output;
    for (unsigned i = out ? out->loan_at : 0; out && i < out->loan_count; i++)
        assert_non_null(out->loan[i].entry);
}

/* Input waits until its plaintext has space. A record behind it is broken. When the session finds
 * that, it is about to seal bytes of a file. */
static void an_alert_leaves_before_no_bytes_of_a_file(void **state)
{
    (void)state;
    enum { SMALL_ONES = 60, UNKNOWN_ONES = 4 };
    struct talk t;
    char *bytes;
    size_t len;
    begin_http2(&t);
    FILE *out = open_pipe(&bytes, &len);
    write_request(&t, 1, "/big.bin", out);
    feed_pipe(&t, out, &bytes, &len);
    out = open_pipe(&bytes, &len);
    for (uint32_t i = 1; i <= SMALL_ONES; i++)
        write_request(&t, 1 + 2 * i, "/small.html", out);
    for (unsigned i = 0; i < UNKNOWN_ONES; i++)
        write_unknown_frame(&t, out);
    (void)fputs("\x17\x03\x03", out);
    (void)fwrite("\0\x20 0123456789abcdef0123456789abcde", 1, 34, out);
    assert_int_equal(fclose(out), 0);
    feed_without_receiving(&t, span_of(bytes, len));
    free(bytes);
    assert_true(t.session.tls->kept_len > 0);
    while (t.want & SESSION_WRITE) {
        assert_lends_nothing_of_the_thread(&t);
        receive_some(&t);
    }
    assert_int_equal(t.want, SESSION_HALF_CLOSE);
    char plain[4096];
    enum tls_result result;
    assert_int_equal(fflush(t.received), 0);
    t.client.connection.in = span_of(t.bytes + t.client.taken, t.len - t.client.taken);
    do
        result = tls_connection_read(&t.client.connection, plain, sizeof(plain), &len);
    while (result == TLS_DONE);
    assert_int_equal(result, TLS_FAILED);
    assert_int_equal(ERR_GET_REASON(t.client.connection.error),
                     SSL_AD_REASON_OFFSET + SSL_AD_BAD_RECORD_MAC);
    assert_int_equal(t.client.connection.in.len, 0); /* the alert was the last record */
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
        cmocka_unit_test(requested_keys_wait_in_no_memory),
        cmocka_unit_test(an_alert_leaves_before_no_bytes_of_a_file),
        cmocka_unit_test(the_end_of_input_ends_a_handshake),
    };
    return cmocka_run_group_tests(tests, make_secured_world, end_secured_world);
}
