/* SPDX-License-Identifier: MIT
 *
 * A client and a server of OpenSSL in memory: whom the client trusts, what it sends, and which
 * sessions it resumes.
 */
#include "tls/client.h"

#include "tls/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a server ---- */

static const long day_s = 24 * 60 * 60;

/* A self-signed certificate for `names`, from `from_s` to `to_s` from now on. Takes no key. */
static X509 *make_certificate(EVP_PKEY *key, const char *names, long from_s, long to_s)
{
    X509 *certificate = X509_new();
    assert_non_null(certificate);
    assert_int_equal(X509_set_version(certificate, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), to_s));
    X509_NAME *name = X509_get_subject_name(certificate);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)"a server", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(certificate, name), 1);
    assert_int_equal(X509_set_pubkey(certificate, key), 1);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

static char file[] = P_tmpdir "/weir-client-XXXXXX";

/* A server's context, and the file of its certificate. */
static SSL_CTX *make_server(const char *names, long from_s, long to_s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_non_null(key);
    X509 *certificate = make_certificate(key, names, from_s, to_s);
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    assert_non_null(context);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    FILE *out = fopen(file, "we");
    assert_non_null(out);
    assert_int_equal(PEM_write_X509(out, certificate), 1);
    assert_int_equal(fclose(out), 0);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return context;
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(file);
    return fd >= 0 ? close(fd) : -1;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

/* ---- both sides ---- */

struct pair {
    struct tls_connection client, server;
    struct tls_chunks chunks;
};

/* Moves all that one side has written to the other side. */
static struct span carry(struct tls_connection *from, struct tls_connection *to, char *bytes)
{
    struct span piece;
    size_t len = 0;
    while (tls_wire_pieces(&from->wire, &piece, 1) > 0) {
        assert_true(len + piece.len <= 65536);
        memcpy(bytes + len, piece.at, piece.len);
        len += piece.len;
        tls_wire_sent(&from->wire, from->chunks, piece.len);
    }
    to->in = span_of(bytes, len);
    return to->in;
}

/* Makes the handshake. Gives the client's result. */
static enum tls_result shake_hands(struct pair *pair, SSL *client, SSL_CTX *context)
{
    static char bytes[65536];
    SSL *server = SSL_new(context);
    assert_non_null(client);
    assert_non_null(server);
    SSL_set_accept_state(server);
    *pair = (struct pair){ .chunks = { 0 } };
    assert_true(tls_connection_open(&pair->client, client, &pair->chunks));
    assert_true(tls_connection_open(&pair->server, server, &pair->chunks));
    enum tls_result result, other = TLS_MORE;
    while ((result = tls_connection_handshake(&pair->client)) == TLS_MORE && other != TLS_FAILED) {
        carry(&pair->client, &pair->server, bytes);
        other = tls_connection_handshake(&pair->server);
        carry(&pair->server, &pair->client, bytes);
    }
    carry(&pair->client, &pair->server, bytes);
    if (other == TLS_MORE) /* TLS 1.3: the server waits for the client's end of the handshake */
        (void)tls_connection_handshake(&pair->server);
    return result;
}

/* The client reads what the server has sent after the handshake: tickets. */
static void read_tickets(struct pair *pair)
{
    static char bytes[65536];
    char plain[16];
    size_t len;
    carry(&pair->server, &pair->client, bytes);
    assert_int_equal(tls_connection_read(&pair->client, plain, sizeof(plain), &len), TLS_MORE);
    assert_int_equal(len, 0);
}

static void part(struct pair *pair)
{
    tls_connection_end(&pair->client);
    tls_connection_close(&pair->client);
    tls_connection_close(&pair->server);
    tls_chunks_trim(&pair->chunks, 0);
}

static struct tls_client *trusting(const char *authorities)
{
    char why[TLS_CLIENT_WHY_MAX];
    const struct tls_client_plan plan = { .authorities = authorities };
    struct tls_client *client = tls_client_new(&plan, why);
    if (!client)
        fail_msg("%s", why);
    return client;
}

/* ---- tests ---- */

static void a_trusted_name_or_address_is_accepted(void **state)
{
    (void)state;
    static const char *const names[] = { "a.example",   "A.Example", "a.example.",
                                         "x.b.example", "192.0.2.1", "2001:db8::1" };
    SSL_CTX *context =
        make_server("DNS:a.example,DNS:*.b.example,IP:192.0.2.1,IP:2001:db8::1", -day_s, day_s);
    struct tls_client *client = trusting(file);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct pair pair;
        assert_int_equal(shake_hands(&pair, tls_client_connect(client, names[i], NULL), context),
                         TLS_DONE);
        struct tls_agreement agreed = tls_connection_agreed(&pair.client);
        assert_string_equal(agreed.protocol, "TLSv1.3");
        assert_true(agreed.cipher[0] != '\0' && agreed.group[0] != '\0' && !agreed.resumed);
        part(&pair);
    }
    tls_client_free(client);
    SSL_CTX_free(context);
}

static void another_name_ends_the_handshake(void **state)
{
    (void)state;
    static const char *const names[] = { "b.example", "x.y.b.example", "192.0.2.2", "xa.example" };
    SSL_CTX *context = make_server("DNS:a.example,DNS:*.b.example,IP:192.0.2.1", -day_s, day_s);
    struct tls_client *client = trusting(file);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct pair pair;
        assert_int_equal(shake_hands(&pair, tls_client_connect(client, names[i], NULL), context),
                         TLS_FAILED);
        assert_true(tls_client_distrusts(pair.client.error));
        part(&pair);
    }
    tls_client_free(client);
    SSL_CTX_free(context);
}

static void a_probe_finds_why_a_certificate_is_not_trusted(void **state)
{
    (void)state;
    static const struct row {
        const char *names, *name;
        long from_s, to_s;
        bool known;
        enum tls_client_cure cure;
        const char *why;
    } rows[] = {
        { "DNS:a.example", "a.example", -1, 1, true, TLS_CURE_NONE, "" },
        { "DNS:a.example", "a.example", -1, 1, false, TLS_CURE_AUTHORITY, "is self-signed" },
        { "DNS:a.example,IP:192.0.2.1", "b.example", -1, 1, true, TLS_CURE_NAME,
          "is for a.example, 192.0.2.1, and not for b.example" },
        { "DNS:a,DNS:b,DNS:c,DNS:d", "e", -1, 1, true, TLS_CURE_NAME,
          "is for a, b, c and others, and not for e" },
        { "email:a@b.example", "b.example", -1, 1, true, TLS_CURE_NAME,
          "is for no host, and not for b.example" },
        { "DNS:a.example", "a.example", -2, -1, true, TLS_CURE_DATE, "ended at " },
        { "DNS:a.example", "a.example", 1, 2, true, TLS_CURE_DATE, "is valid only from " },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        SSL_CTX *context = make_server(row->names, row->from_s * day_s, row->to_s * day_s);
        struct tls_client *client = trusting(row->known ? file : NULL);
        struct pair pair;
        char why[TLS_CLIENT_WHY_MAX];
        assert_int_equal(shake_hands(&pair, tls_client_probe(client, row->name), context),
                         TLS_DONE);
        assert_int_equal(tls_client_doubt(client, pair.client.ssl, row->name, why), row->cure);
        assert_memory_equal(why, row->why, strlen(row->why));
        part(&pair);
        tls_client_free(client);
        SSL_CTX_free(context);
    }
}

static void an_insecure_client_accepts_any_certificate(void **state)
{
    (void)state;
    SSL_CTX *context = make_server("DNS:a.example", -2 * day_s, -day_s);
    char why[TLS_CLIENT_WHY_MAX];
    const struct tls_client_plan plan = { .insecure = true };
    struct tls_client *client = tls_client_new(&plan, why);
    struct pair pair;
    assert_int_equal(shake_hands(&pair, tls_client_connect(client, "b.example", NULL), context),
                     TLS_DONE);
    assert_int_equal(tls_client_doubt(client, pair.client.ssl, "b.example", why), TLS_CURE_NONE);
    part(&pair);
    tls_client_free(client);
    SSL_CTX_free(context);
}

static void the_newest_ticket_is_offered(void **state)
{
    (void)state;
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    for (unsigned i = 0; i < 2; i++) {
        SSL_CTX *context = make_server("DNS:a.example", -day_s, day_s);
        assert_int_equal(SSL_CTX_set_max_proto_version(context, versions[i]), 1);
        struct tls_client *client = trusting(file);
        SSL_SESSION *ticket = NULL, *before = NULL;
        for (unsigned connection = 0; connection < 4; connection++) {
            struct pair pair;
            assert_int_equal(
                shake_hands(&pair, tls_client_connect(client, "a.example", &ticket), context),
                TLS_DONE);
            assert_int_equal(tls_connection_agreed(&pair.client).resumed, connection > 0);
            read_tickets(&pair);
            assert_non_null(ticket);
            assert_true(versions[i] == TLS1_2_VERSION || ticket != before);
            before = ticket;
            part(&pair);
        }
        tls_client_forget(&ticket);
        assert_null(ticket);
        tls_client_free(client);
        SSL_CTX_free(context);
    }
}

static int note_hello(SSL *ssl, int *alert, void *context)
{
    (void)alert;
    const unsigned char *bytes;
    size_t len;
    bool *named = context;
    *named = SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &len) == 1;
    assert_int_equal(SSL_client_hello_get0_ext(
                         ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &len),
                     1);
    assert_int_equal(len, 11);
    assert_memory_equal(bytes + 2, "\x08http/1.1", 9);
    return SSL_CLIENT_HELLO_SUCCESS;
}

static void a_name_is_sent_and_an_address_is_not(void **state)
{
    (void)state;
    bool named = false;
    SSL_CTX *context = make_server("DNS:a.example,IP:192.0.2.1,IP:::1", -day_s, day_s);
    SSL_CTX_set_client_hello_cb(context, note_hello, &named);
    struct tls_client *client = trusting(file);
    static const struct {
        const char *name;
        bool sent;
    } rows[] = { { "a.example", true }, { "192.0.2.1", false }, { "::1", false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pair pair;
        assert_int_equal(
            shake_hands(&pair, tls_client_connect(client, rows[i].name, NULL), context), TLS_DONE);
        assert_int_equal(named, rows[i].sent);
        part(&pair);
    }
    tls_client_free(client);
    SSL_CTX_free(context);
}

static void a_file_without_certificates_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *why;
    } rows[] = {
        { "/nonexistent", "/nonexistent: No such file or directory" },
        { "/dev/null", "/dev/null: the file has no certificate in PEM form" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[TLS_CLIENT_WHY_MAX];
        const struct tls_client_plan plan = { .authorities = rows[i].path };
        assert_null(tls_client_new(&plan, why));
        assert_string_equal(why, rows[i].why);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trusted_name_or_address_is_accepted),
        cmocka_unit_test(another_name_ends_the_handshake),
        cmocka_unit_test(a_probe_finds_why_a_certificate_is_not_trusted),
        cmocka_unit_test(an_insecure_client_accepts_any_certificate),
        cmocka_unit_test(the_newest_ticket_is_offered),
        cmocka_unit_test(a_name_is_sent_and_an_address_is_not),
        cmocka_unit_test(a_file_without_certificates_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
