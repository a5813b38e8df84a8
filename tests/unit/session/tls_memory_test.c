/* SPDX-License-Identifier: MIT
 *
 * Each allocation of weir and of OpenSSL fails once while a client is served over TLS.
 * The connection ends, or is served as before. A connection beside it always is. Nothing leaks
 * (under AddressSanitizer). The transport (BIO) fails only when a chunk cannot be allocated, so
 * this covers it.
 */
#include "secured.h"

#include <openssl/crypto.h>

/* The linker has the calls of weir's own code come here (-Wl,--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);

static bool armed;
static unsigned long calls, failing; /* the number of the call that fails; 0: none */

static bool fails_now(void)
{
    return armed && ++calls == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *at, size_t size)
{
    return fails_now() ? NULL : __real_realloc(at, size);
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails_now() ? NULL : __real_malloc(size);
}

static void *openssl_realloc(void *at, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails_now() ? NULL : __real_realloc(at, size);
}

static void openssl_free(void *at, const char *file, int line)
{
    (void)file, (void)line;
    free(at);
}

/* Only calls of the session fail, and each leaves no error of OpenSSL behind. */
static void arm(bool begins)
{
    armed = begins;
    if (!begins)
        assert_int_equal(ERR_peek_error(), 0);
}

/* Whether the connection continues. */
static bool is_open(struct talk *t)
{
    receive_all(t);
    return t->want == SESSION_READ;
}

static bool shake_or_fail(struct talk *t)
{
    enum tls_result result = TLS_MORE;
    while (result == TLS_MORE && t->want == SESSION_READ) {
        char *bytes;
        size_t len;
        FILE *out = open_pipe(&bytes, &len);
        result = secure_shake_hands(&t->client, span_of(t->bytes, t->len), out);
        feed_pipe(t, out, &bytes, &len);
        (void)is_open(t);
    }
    return result == TLS_DONE && t->want == SESSION_READ;
}

/* A request in two pieces, so that the session keeps a part of a record. Whether the whole answer
 * has come. */
static bool is_answered(struct talk *t, const char *request, size_t least)
{
    char *bytes, *plain;
    size_t len, answer_len;
    FILE *out = open_pipe(&bytes, &len);
    assert_true(secure_seal(&t->client, span_text(request), TLS_RECORD_BYTES, out));
    assert_int_equal(fflush(out), 0);
    feed_bytes(t, span_of(bytes, len / 2));
    feed_bytes(t, span_of(bytes + len / 2, len - len / 2));
    assert_int_equal(fclose(out), 0);
    free(bytes);
    (void)is_open(t);
    out = open_pipe(&plain, &answer_len);
    (void)secure_unseal(&t->client, span_of(t->bytes, t->len), out); /* it may be cut */
    ERR_clear_error();
    t->client.taken = t->len;
    assert_int_equal(fclose(out), 0);
    bool whole = answer_len >= least && memcmp(plain, "HTTP/1.1 200 ", 13) == 0;
    free(plain);
    return whole && t->want == SESSION_READ;
}

static void update_keys(struct talk *t)
{
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    assert_int_equal(SSL_key_update(t->client.connection.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(t->client.connection.ssl), 1);
    secure_flush(&t->client, out);
    feed_pipe(t, out, &bytes, &len);
}

/* A handshake, three answers, new keys, and the end. Whether all of it went well. */
static bool live(struct talk *t)
{
    if (!shake_or_fail(t) || !is_answered(t, GET("/small.html"), 308) ||
        !is_answered(t, GET("/big.bin"), BIG_SIZE))
        return false;
    update_keys(t);
    if (!is_open(t) || !is_answered(t, GET("/middle.bin") GET("/none"), MIDDLE_SIZE))
        return false;
    char *bytes;
    size_t len;
    FILE *out = open_pipe(&bytes, &len);
    secure_end(&t->client, out);
    feed_pipe(t, out, &bytes, &len);
    receive_all(t);
    return true;
}

static void one_connection_at_most_ends(void **state)
{
    (void)state;
    struct talk beside;
    open_talk(&beside);
    shake(&beside);
    around_call = arm;
    bool has_failed = true;
    unsigned long ended = 0, total = 0;
    for (failing = 0; has_failed; failing++) {
        struct talk t;
        calls = 0;
        open_talk(&t);
        bool well = live(&t);
        close_talk(&t);
        has_failed = failing == 0 || calls >= failing;
        if (!well && (failing == 0 || !has_failed))
            fail_msg("call %lu: the connection ended although no allocation failed", failing);
        ended += !well;
        total = calls > total ? calls : total;
        unsigned long number = failing;
        failing = 0;
        assert_true(is_answered(&beside, GET("/small.html"), 308));
        failing = number;
    }
    failing = 0;
    around_call = NULL;
    close_talk(&beside);
    print_message("%lu allocations, %lu ended a connection\n", total, ended);
    assert_true(ended > 100);
}

int main(void)
{
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_connection_at_most_ends),
    };
    return cmocka_run_group_tests(tests, make_secured_world, end_secured_world);
}
