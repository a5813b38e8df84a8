/* SPDX-License-Identifier: MIT
 *
 * Records of TLS 1.3 after the handshake, between a server's connection that has settled and a
 * client of OpenSSL. Records that OpenSSL would not send are sealed here, with OpenSSL's own key
 * schedule.
 */
#include "fixture.h"
#include "support/secure.h"
#include "tls/records.h"
#include "tls/tickets.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>

struct fixture {
    struct tree tree;
    struct tls_pair pair;
    struct tls_tickets tickets;
    struct tls_server *server;
};

static int set_up(void **state)
{
    static struct fixture f;
    EVP_PKEY *key = make_ec_key();
    tree_make(&f.tree);
    write_pair(&f.tree, "a", key, "DNS:a.test");
    f.pair = pair_of(&f.tree, "a.crt", "a.key");
    EVP_PKEY_free(key);
    const struct tls_server_site site = { .name = "a", .pairs = &f.pair, .pair_count = 1 };
    assert_int_equal(tls_tickets_open(&f.tickets, 1), 0);
    f.server = new_server(
        &(struct tls_server_plan){ .sites = &site, .site_count = 1, .tickets = &f.tickets });
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tls_server_free(f->server);
    tls_tickets_close(&f->tickets);
    free_pair(&f->pair);
    tree_remove(&f->tree);
    return 0;
}

/* ---- a server and a client ---- */

struct pair {
    SSL_CTX *context;
    struct tls_connection server, client;
    struct tls_chunks chunks;
    unsigned char first_in[TLS_SECRET_BYTES]; /* the client's first traffic secret */
    char plain[70000];                        /* that was read last */
    size_t len;
};

/* The bytes that `from` has to send, which the caller frees. */
static struct span take_output(struct pair *p, struct tls_connection *from)
{
    size_t len = 0;
    struct span piece;
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    while (tls_wire_pieces(&from->wire, &piece, 1) == 1) {
        assert_true(piece.len > 0);
        memcpy(bytes + len, piece.at, piece.len);
        len += piece.len;
        tls_wire_sent(&from->wire, &p->chunks, piece.len);
    }
    return span_of(bytes, len);
}

static enum tls_result read_span(struct pair *p, struct tls_connection *to, struct span bytes)
{
    to->in = bytes;
    return tls_connection_read(to, p->plain, sizeof(p->plain), &p->len);
}

/* What `from` has to send goes to `to`, which reads it. */
static enum tls_result pass(struct pair *p, struct tls_connection *from, struct tls_connection *to)
{
    struct span bytes = take_output(p, from);
    enum tls_result result = read_span(p, to, bytes);
    free((char *)bytes.at);
    return result;
}

static void assert_passes(struct pair *p, struct tls_connection *from, struct tls_connection *to,
                          const char *bytes, size_t len)
{
    assert_int_equal(tls_connection_write(from, span_of(bytes, len)), TLS_DONE);
    assert_int_equal(pass(p, from, to), TLS_MORE);
    assert_int_equal(p->len, len);
    assert_memory_equal(p->plain, bytes, len);
}

static void shake(struct pair *p)
{
    enum tls_result client = TLS_MORE, server = TLS_MORE;
    for (unsigned i = 0; i < 10 && (client == TLS_MORE || server == TLS_MORE); i++) {
        client = client == TLS_MORE ? tls_connection_handshake(&p->client) : client;
        struct span bytes = take_output(p, &p->client);
        p->server.in = bytes;
        server = server == TLS_MORE ? tls_connection_handshake(&p->server) : server;
        free((char *)bytes.at);
        bytes = take_output(p, &p->server);
        p->client.in = bytes;
        if (client == TLS_DONE)
            assert_int_equal(tls_connection_read(&p->client, p->plain, 1, &p->len), TLS_MORE);
        else
            client = tls_connection_handshake(&p->client);
        free((char *)bytes.at);
    }
    assert_int_equal(client, TLS_DONE);
    assert_int_equal(server, TLS_DONE);
}

static SSL_CTX *client_context(const char *suite, int version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    assert_true(SSL_CTX_set_max_proto_version(context, version));
    if (suite)
        assert_true(SSL_CTX_set_ciphersuites(context, suite));
    return context;
}

/* The pair has the context of its client. */
static struct pair *open_pair_with(struct fixture *f, SSL_CTX *context, SSL_SESSION *session)
{
    struct pair *p = calloc(1, sizeof(*p));
    p->context = context;
    SSL *ssl = SSL_new(p->context);
    SSL_set_connect_state(ssl);
    assert_true(!session || SSL_set_session(ssl, session));
    assert_true(tls_connection_open(&p->client, ssl, &p->chunks));
    assert_true(tls_connection_open(&p->server, tls_server_accept(f->server), &p->chunks));
    shake(p);
    memcpy(p->first_in, p->server.records->in.secret.bytes, sizeof(p->first_in));
    return p;
}

static struct pair *open_pair(struct fixture *f, const char *suite, int version)
{
    return open_pair_with(f, client_context(suite, version), NULL);
}

static void close_pair(struct pair *p)
{
    tls_connection_close(&p->server);
    tls_connection_close(&p->client);
    tls_chunks_trim(&p->chunks, 0);
    SSL_CTX_free(p->context);
    assert_int_equal(ERR_peek_error(), 0);
    free(p);
}

/* After a request and an answer under OpenSSL. */
static struct pair *open_settled(struct fixture *f, const char *suite)
{
    struct pair *p = open_pair(f, suite, TLS1_3_VERSION);
    assert_passes(p, &p->client, &p->server, "request", 7);
    assert_int_equal(tls_connection_write(&p->server, SPAN("answer")), TLS_DONE);
    tls_connection_settle(&p->server);
    assert_null(p->server.ssl);
    assert_int_equal(pass(p, &p->server, &p->client), TLS_MORE);
    assert_int_equal(p->len, 6);
    return p;
}

/* ---- records that no client of OpenSSL sends ---- */

static void derive(const unsigned char *secret, const char *label, unsigned char *to, size_t len)
{
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char[]){ "SHA256" }, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, 32),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, (char[]){ "tls13 " }, 6),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, (void *)(uintptr_t)label,
                                          strlen(label)),
        OSSL_PARAM_construct_end()
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", "provider=default");
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    assert_int_equal(EVP_KDF_derive(context, to, len, params), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

/* A record of the client under AES-128-GCM: the one after its first request. `inner` has the
 * content, the type and the padding. */
static struct span seal_inner(struct pair *p, struct span inner, unsigned char *to)
{
    unsigned char key[16], iv[12];
    int len;
    derive(p->first_in, "key", key, sizeof(key));
    derive(p->first_in, "iv", iv, sizeof(iv));
    iv[11] ^= 1;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    const size_t size = inner.len + 16;
    memcpy(to, (unsigned char[]){ 23, 3, 3, (unsigned char)(size >> 8), (unsigned char)size }, 5);
    assert_int_equal(EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, key, iv), 1);
    assert_int_equal(EVP_EncryptUpdate(cipher, NULL, &len, to, 5), 1);
    assert_int_equal(
        EVP_EncryptUpdate(cipher, to + 5, &len, (const unsigned char *)inner.at, (int)inner.len),
        1);
    assert_int_equal(EVP_EncryptFinal_ex(cipher, to + 5 + inner.len, &len), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, 16, to + 5 + inner.len), 1);
    EVP_CIPHER_CTX_free(cipher);
    return span_of((const char *)to, size + 5);
}

static void assert_alert(struct pair *p, int description)
{
    assert_int_equal(pass(p, &p->server, &p->client), TLS_FAILED);
    assert_int_equal(ERR_GET_REASON(p->client.error), SSL_AD_REASON_OFFSET + description);
}

/* ---- tests ---- */

static void carries_data_under_each_suite(void **state)
{
    static const char *const suites[] = { "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                          "TLS_CHACHA20_POLY1305_SHA256" };
    static const size_t sizes[] = { 1, 15, 16, 2047, 2048, 2049, 5000, TLS_RECORD_BYTES };
    static char bytes[TLS_RECORD_BYTES];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < 3; i++) {
        struct pair *p = open_settled(*state, suites[i]);
        assert_string_equal(SSL_get_cipher_name(p->client.ssl), suites[i]);
        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            assert_passes(p, &p->client, &p->server, bytes, sizes[j]);
            assert_passes(p, &p->server, &p->client, bytes, sizes[j]);
        }
        close_pair(p);
    }
}

/* Passes the bytes from the server to the client in pieces of `sizes`, the last one up to `len`. */
static void assert_gathers(struct pair *p, const char *bytes, size_t len, const size_t *sizes)
{
    static char scratch[TLS_RECORD_BYTES];
    struct span pieces[12];
    unsigned count = 0;
    for (size_t at = 0; at < len; at += pieces[count++].len)
        pieces[count] = span_first(span_of(bytes + at, len - at), sizes[count]);
    assert_int_equal(tls_connection_write_pieces(&p->server, pieces, count, scratch), TLS_DONE);
    struct tls_wire *wire = &p->server.wire;
    assert_ptr_equal(wire->first, wire->last);
    assert_int_equal(wire->first->len, 5 + len + 1 + 16); /* one record */
    assert_int_equal(pass(p, &p->server, &p->client), TLS_MORE);
    assert_int_equal(p->len, len);
    assert_memory_equal(p->plain, bytes, len);
}

static void pieces_become_one_record(void **state)
{
    static const char *const suites[] = { "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                          "TLS_CHACHA20_POLY1305_SHA256" };
    enum { REST = TLS_RECORD_BYTES };
    static const size_t splits[][12] = {
        { 1, REST },
        { 9, REST },
        { 16, REST },
        { REST },
        { 2048, 2049, REST },
        { 9, 3000, 7, REST },
        { 150, 5000, 159, 5000, 159, REST },
        { 4000, 1, 1, 1, 4000, 15, 17, 4001, REST },
        { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, REST },
    };
    static const size_t sizes[] = { 1, 10, 100, 5000, 16000, TLS_RECORD_BYTES };
    static char bytes[TLS_RECORD_BYTES];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 5 + i / 249);
    for (size_t i = 0; i < 2 * sizeof(suites) / sizeof(suites[0]); i++) {
        struct pair *p = i % 2 == 0 ? open_settled(*state, suites[i / 2])
                                    : open_pair(*state, suites[i / 2], TLS1_3_VERSION);
        for (size_t j = 0; j < sizeof(splits) / sizeof(splits[0]); j++)
            for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
                assert_gathers(p, bytes, sizes[k], splits[j]);
        close_pair(p);
    }
}

static void every_split_gives_the_same_bytes(void **state)
{
    struct pair *p = open_settled(*state, NULL);
    for (size_t step = 1; step < 80; step++) {
        assert_int_equal(tls_connection_write(&p->client, SPAN("first")), TLS_DONE);
        assert_int_equal(tls_connection_write(&p->client, SPAN("and second")), TLS_DONE);
        struct span all = take_output(p, &p->client), rest = all;
        char found[20];
        size_t len = 0;
        while (rest.len > 0) {
            struct span part = span_first(rest, step);
            char *copy = malloc(part.len); /* a read beyond it is seen */
            memcpy(copy, part.at, part.len);
            assert_int_equal(read_span(p, &p->server, span_of(copy, part.len)), TLS_MORE);
            memcpy(found + len, p->plain, p->len);
            len += p->len;
            free(copy);
            rest = span_skip(rest, part.len);
        }
        assert_int_equal(len, 15);
        assert_memory_equal(found, "firstand second", 15);
        free((char *)all.at);
    }
    close_pair(p);
}

static void a_reader_may_have_little_space(void **state)
{
    struct pair *p = open_settled(*state, NULL);
    assert_int_equal(tls_connection_write(&p->client, SPAN("0123456789")), TLS_DONE);
    assert_int_equal(tls_connection_write(&p->client, SPAN("abcdef")), TLS_DONE);
    struct span bytes = take_output(p, &p->client);
    p->server.in = bytes;
    char found[30];
    size_t len = 0, part;
    while (tls_connection_read(&p->server, found + len, 3, &part) == TLS_DONE) {
        assert_int_equal(part, 3);
        len += part;
        assert_true(len >= 9 || tls_connection_has_plain(&p->server));
    }
    len += part;
    assert_int_equal(len, 16);
    assert_memory_equal(found, "0123456789abcdef", 16);
    assert_false(tls_connection_has_plain(&p->server));
    free((char *)bytes.at);
    close_pair(p);
}

static void an_alert_that_does_not_fit_leaves_nothing_to_read(void **state)
{
    static const struct {
        struct span inner;
        enum tls_result result;
    } cases[] = {
        { SPAN("\1\0\x15"), TLS_ENDED },
        { SPAN("\2\x28\x15"), TLS_FAILED },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char record[64];
        char found[1];
        size_t len;
        struct pair *p = open_settled(*state, "TLS_AES_128_GCM_SHA256");
        p->server.in = seal_inner(p, cases[i].inner, record);
        assert_int_equal(tls_connection_read(&p->server, found, 1, &len), cases[i].result);
        assert_int_equal(len, 0);
        assert_false(tls_connection_has_plain(&p->server));
        close_pair(p);
    }
}

static void update_client(struct pair *p, int kind)
{
    assert_int_equal(SSL_key_update(p->client.ssl, kind), 1);
    assert_int_equal(SSL_do_handshake(p->client.ssl), 1);
}

static void follows_key_updates(void **state)
{
    static const char *const suites[] = { "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384" };
    unsigned char before[TLS_SECRET_BYTES];
    for (size_t i = 0; i < 2; i++) {
        struct pair *p = open_settled(*state, suites[i]);
        for (unsigned round = 0; round < 50; round++) {
            update_client(p, round % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
            assert_passes(p, &p->client, &p->server, "request", 7);
            assert_true(tls_wire_is_empty(&p->server.wire));
            memcpy(before, p->server.records->out.secret.bytes, sizeof(before));
            assert_passes(p, &p->server, &p->client, "answer", 6);
            const bool same = memcmp(before, p->server.records->out.secret.bytes, sizeof(before)) ==
                              0;
            assert_int_equal(!same, round % 2);
        }
        close_pair(p);
    }
}

static void refuses_a_flood_of_key_updates(void **state)
{
    struct pair *p = open_settled(*state, NULL);
    for (unsigned i = 0; i < 32; i++)
        update_client(p, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_int_equal(pass(p, &p->client, &p->server), TLS_MORE);
    update_client(p, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_int_equal(pass(p, &p->client, &p->server), TLS_FAILED);
    p->client.messages = 0; /* it counts its own, too */
    assert_alert(p, SSL_AD_UNEXPECTED_MESSAGE);
    close_pair(p);
}

static void changes_its_keys_before_they_wear_out(void **state)
{
    struct pair *p = open_settled(*state, NULL);
    unsigned char before[TLS_SECRET_BYTES];
    memcpy(before, p->server.records->out.secret.bytes, sizeof(before));
    assert_passes(p, &p->server, &p->client, "answer", 6);
    assert_memory_equal(before, p->server.records->out.secret.bytes, sizeof(before));
    uint64_t sent = p->server.records->out.count;
    p->server.records->out.count = UINT64_C(1) << 24;
    assert_int_equal(tls_connection_write(&p->server, SPAN("lost")), TLS_DONE);
    assert_int_not_equal(memcmp(before, p->server.records->out.secret.bytes, 32), 0);
    assert_true(p->server.records->out.count < sent);
    close_pair(p);
}

static void ends_with_close_notify(void **state)
{
    struct pair *p = open_settled(*state, NULL);
    tls_connection_end(&p->server);
    assert_int_equal(pass(p, &p->server, &p->client), TLS_ENDED);
    assert_int_equal(tls_connection_write(&p->client, SPAN("last")), TLS_DONE);
    tls_connection_end(&p->client);
    assert_int_equal(pass(p, &p->client, &p->server), TLS_ENDED);
    assert_int_equal(p->len, 4);
    assert_int_equal(read_span(p, &p->server, SPAN("ignored")), TLS_ENDED);
    close_pair(p);
}

static void answers_broken_records_with_an_alert(void **state)
{
    static const struct {
        struct span bytes;
        int alert;
    } cases[] = {
        { SPAN("\x17\x03\x03\x00\x20 0123456789abcdef0123456789abcde"), SSL_AD_BAD_RECORD_MAC },
        { SPAN("\x17\x03\x03\x00\x10 0123456789abcde"), SSL_AD_BAD_RECORD_MAC },
        { SPAN("\x17\x03\x03\x00\x00"), SSL_AD_BAD_RECORD_MAC },
        { SPAN("\x17\x03\x03\x41\x01"), SSL_AD_RECORD_OVERFLOW },
        { SPAN("\x17\x03\x03\xff\xff\x00"), SSL_AD_RECORD_OVERFLOW },
        { SPAN("\x14\x03\x03\x00\x01\x01"), SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN("\x15\x03\x03\x00\x02\x01\x00"), SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN("\x16\x03\x03\x00\x05\x18\x00\x00\x01\x00"), SSL_AD_UNEXPECTED_MESSAGE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pair *p = open_settled(*state, NULL);
        assert_int_equal(read_span(p, &p->server, cases[i].bytes), TLS_FAILED);
        assert_int_equal(p->len, 0);
        tls_connection_end(&p->server); /* adds nothing */
        assert_alert(p, cases[i].alert);
        assert_int_equal(read_span(p, &p->server, SPAN("")), TLS_FAILED);
        close_pair(p);
    }
}

#define ZEROS_100 \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static void takes_the_content_of_a_record_by_its_type(void **state)
{
    static const struct {
        struct span inner;
        enum tls_result result;
        int alert;
    } cases[] = {
        { SPAN("data\x17"), TLS_MORE, 0 },
        { SPAN("data\x17" ZEROS_100), TLS_MORE, 0 },
        { SPAN("\x17"), TLS_MORE, 0 },
        { SPAN("\1\x5a\x15"), TLS_MORE, 0 }, /* user_canceled */
        { SPAN("\1\0\x15"), TLS_ENDED, -1 },
        { SPAN("\2\x28\x15"), TLS_FAILED, -1 }, /* handshake_failure */
        { SPAN("\1\x15"), TLS_FAILED, SSL_AD_DECODE_ERROR },
        { SPAN("\1\0\0\x15"), TLS_FAILED, SSL_AD_DECODE_ERROR },
        { SPAN("\x15"), TLS_FAILED, SSL_AD_DECODE_ERROR },
        { SPAN("\x18\0\0\1\0\x16"), TLS_MORE, 0 },
        { SPAN("\x18\0\0\x16"), TLS_MORE, 0 }, /* the rest follows */
        { SPAN("\x18\0\0\1\2\x16"), TLS_FAILED, SSL_AD_ILLEGAL_PARAMETER },
        { SPAN("\x18\0\0\2\0\x16"), TLS_FAILED, SSL_AD_DECODE_ERROR },
        { SPAN("\x18\0\0\1\0\x18\0\0\1\0\x16"), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN("\1\x16"), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE }, /* a ClientHello */
        { SPAN("\x16"), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN("\1\x14"), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN("data\x63"), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE },
        { SPAN(ZEROS_100), TLS_FAILED, SSL_AD_UNEXPECTED_MESSAGE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char record[200];
        struct pair *p = open_settled(*state, "TLS_AES_128_GCM_SHA256");
        enum tls_result result = read_span(p, &p->server, seal_inner(p, cases[i].inner, record));
        if (result != cases[i].result)
            fail_msg("case %zu: %d", i, result);
        assert_int_equal(p->len, i < 2 ? 4 : 0);
        if (cases[i].alert > 0)
            assert_alert(p, cases[i].alert);
        else
            assert_true(tls_wire_is_empty(&p->server.wire));
        close_pair(p);
    }
}

/* A record may have 16,384 bytes of content, and padding only within that (RFC 8446 section
 * 5.4). */
static void a_record_has_a_longest_content(void **state)
{
    static char inner[TLS_RECORD_BYTES + 2];
    static unsigned char record[TLS_RECORD_BYTES + 100];
    for (size_t more = 1; more <= 2; more++) {
        struct pair *p = open_settled(*state, "TLS_AES_128_GCM_SHA256");
        memset(inner, 'x', sizeof(inner));
        inner[TLS_RECORD_BYTES + more - 1] = 0x17;
        struct span bytes = seal_inner(p, span_of(inner, TLS_RECORD_BYTES + more), record);
        assert_int_equal(read_span(p, &p->server, bytes), more == 1 ? TLS_MORE : TLS_FAILED);
        assert_int_equal(p->len, more == 1 ? TLS_RECORD_BYTES : 0);
        if (more == 2)
            assert_alert(p, SSL_AD_RECORD_OVERFLOW);
        close_pair(p);
    }
}

static void openssl_keeps_what_it_has_begun(void **state)
{
    struct pair *p = open_pair(*state, NULL, TLS1_2_VERSION);
    assert_passes(p, &p->client, &p->server, "request", 7);
    tls_connection_settle(&p->server);
    assert_non_null(p->server.ssl);
    assert_passes(p, &p->client, &p->server, "request", 7);
    close_pair(p);

    for (size_t cut = 1; cut < 28; cut++) { /* of a record of 28 bytes */
        p = open_pair(*state, NULL, TLS1_3_VERSION);
        assert_passes(p, &p->client, &p->server, "request", 7);
        assert_int_equal(tls_connection_write(&p->client, SPAN("second")), TLS_DONE);
        struct span bytes = take_output(p, &p->client);
        assert_int_equal(bytes.len, 28);
        assert_int_equal(read_span(p, &p->server, span_first(bytes, cut)), TLS_MORE);
        tls_connection_settle(&p->server);
        assert_non_null(p->server.ssl);
        assert_int_equal(read_span(p, &p->server, span_skip(bytes, cut)), TLS_MORE);
        assert_int_equal(p->len, 6);
        tls_connection_settle(&p->server);
        assert_null(p->server.ssl);
        assert_passes(p, &p->client, &p->server, "third", 5);
        free((char *)bytes.at);
        close_pair(p);
    }

    p = open_pair(*state, NULL, TLS1_3_VERSION);
    update_client(p, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_passes(p, &p->client, &p->server, "request", 7);
    tls_connection_settle(&p->server);
    assert_non_null(p->server.ssl);
    assert_passes(p, &p->client, &p->server, "request", 7);
    close_pair(p);
}

/* The records of a client that asks for at most 512 bytes (RFC 6066 section 4). Its session keeps
 * that, so the records of a resumed connection are short, too. */
static void openssl_keeps_a_client_that_asks_for_short_records(void **state)
{
    static const char answer[3000];
    SSL_SESSION *session = NULL;
    for (unsigned visit = 0; visit < 2; visit++) {
        SSL_CTX *context = client_context(NULL, TLS1_3_VERSION);
        assert_true(
            SSL_CTX_set_tlsext_max_fragment_length(context, TLSEXT_max_fragment_length_512));
        struct pair *p = open_pair_with(*state, context, session);
        assert_int_equal(SSL_session_reused(p->client.ssl), visit);
        for (unsigned i = 0; i < 2; i++) {
            assert_passes(p, &p->client, &p->server, "request", 7);
            assert_passes(p, &p->server, &p->client, answer, sizeof(answer));
            tls_connection_settle(&p->server);
            assert_non_null(p->server.ssl);
        }
        SSL_SESSION_free(session);
        session = SSL_get1_session(p->client.ssl);
        tls_connection_end(&p->client); /* else the session would not be resumed */
        close_pair(p);
    }
    SSL_SESSION_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_data_under_each_suite),
        cmocka_unit_test(pieces_become_one_record),
        cmocka_unit_test(every_split_gives_the_same_bytes),
        cmocka_unit_test(an_alert_that_does_not_fit_leaves_nothing_to_read),
        cmocka_unit_test(a_reader_may_have_little_space),
        cmocka_unit_test(follows_key_updates),
        cmocka_unit_test(refuses_a_flood_of_key_updates),
        cmocka_unit_test(changes_its_keys_before_they_wear_out),
        cmocka_unit_test(ends_with_close_notify),
        cmocka_unit_test(answers_broken_records_with_an_alert),
        cmocka_unit_test(takes_the_content_of_a_record_by_its_type),
        cmocka_unit_test(a_record_has_a_longest_content),
        cmocka_unit_test(openssl_keeps_what_it_has_begun),
        cmocka_unit_test(openssl_keeps_a_client_that_asks_for_short_records),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
