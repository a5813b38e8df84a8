/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS. The conformance cases run over TLS, too. This tests what they cannot: short
 * writes of large answers, files that change, deadlines, alerts, key updates and sessions that
 * change threads.
 */
#include "secured.h"

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
    return cmocka_run_group_tests(tests, make_secured_world, end_secured_world);
}
