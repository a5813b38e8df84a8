/* SPDX-License-Identifier: MIT
 *
 * Certificates made for a test, and a TLS client that talks to a server's SSL in memory. Keys are
 * made once for each program, because an RSA key takes a noticeable time.
 */
#pragma once

#include "tls/connection.h"
#include "tls/server.h"
#include "tree.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

enum { DAY_S = 86400 };

/* ---- certificates ---- */

static inline EVP_PKEY *make_ec_key(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_non_null(key);
    return key;
}

struct issue {
    EVP_PKEY *key;
    X509 *issuer; /* NULL: self-signed */
    EVP_PKEY *issuer_key;
    const char *subject;
    const char *names; /* as in openssl.cnf: "DNS:a,IP:::1"; NULL: none */
    int64_t begins_s, ends_s;
    bool authority;
};

static inline void add_extension(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static inline X509 *issue_certificate(const struct issue *how)
{
    static long serial;
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_NAME_new();
    time_t now = time(NULL);
    assert_non_null(certificate);
    assert_true(X509_set_version(certificate, X509_VERSION_3));
    assert_true(ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial));
    assert_true(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                           (const unsigned char *)how->subject, -1, -1, 0));
    assert_true(X509_set_subject_name(certificate, subject));
    assert_true(X509_set_issuer_name(certificate,
                                     how->issuer ? X509_get_subject_name(how->issuer) : subject));
    assert_non_null(ASN1_TIME_set(X509_getm_notBefore(certificate),
                                  how->begins_s ? how->begins_s : now - DAY_S));
    assert_non_null(ASN1_TIME_set(X509_getm_notAfter(certificate),
                                  how->ends_s ? how->ends_s : now + 100 * DAY_S));
    assert_true(X509_set_pubkey(certificate, how->key));
    if (how->names)
        add_extension(certificate, NID_subject_alt_name, how->names);
    if (how->authority)
        add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    assert_true(X509_sign(certificate, how->issuer_key ? how->issuer_key : how->key, EVP_sha256()) >
                0);
    X509_NAME_free(subject);
    return certificate;
}

static inline void write_bio(const struct tree *tree, const char *path, BIO *bio)
{
    char *text;
    long len = BIO_get_mem_data(bio, &text);
    tree_write_bytes(tree, path, span_of(text, (size_t)len));
    BIO_free(bio);
}

static inline void write_key(const struct tree *tree, const char *path, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL));
    write_bio(tree, path, bio);
}

/* Up to three certificates, in this order. */
static inline void write_chain(const struct tree *tree, const char *path, X509 *first, X509 *second,
                               X509 *third)
{
    X509 *all[] = { first, second, third };
    BIO *bio = BIO_new(BIO_s_mem());
    for (unsigned i = 0; i < 3 && all[i]; i++)
        assert_true(PEM_write_bio_X509(bio, all[i]));
    write_bio(tree, path, bio);
}

/* A self-signed pair in the files NAME.crt and NAME.key. */
static inline void write_pair(const struct tree *tree, const char *name, EVP_PKEY *key,
                              const char *names)
{
    char path[64];
    X509 *certificate =
        issue_certificate(&(struct issue){ .key = key, .subject = name, .names = names });
    (void)snprintf(path, sizeof(path), "%s.crt", name);
    write_chain(tree, path, certificate, NULL, NULL);
    (void)snprintf(path, sizeof(path), "%s.key", name);
    write_key(tree, path, key);
    X509_free(certificate);
}

/* The paths of the pair NAME, to be freed with free_pair. */
static inline struct tls_pair pair_of(const struct tree *tree, const char *certificate,
                                      const char *key)
{
    struct tls_pair pair = { strdup(tree_absolute(tree, certificate)), NULL };
    pair.key = strdup(tree_absolute(tree, key));
    return pair;
}

static inline void free_pair(struct tls_pair *pair)
{
    free((char *)pair->certificate);
    free((char *)pair->key);
    *pair = (struct tls_pair){ 0 };
}

/* ---- a conversation ---- */

struct client {
    const char *host;      /* NULL: no server name */
    int lowest, highest;   /* TLS1_2_VERSION, ...; 0: any */
    const char *suites;    /* of TLS 1.2; NULL: the usual */
    const char *groups;    /* NULL: the usual */
    const char *protocols; /* of ALPN, each behind its length; NULL: none */
    SSL_SESSION *session;  /* to resume; NULL: none */
};

struct talk {
    SSL_CTX *context;
    SSL *client, *server;
    bool connected;
    int alert; /* that the client received; -1: none */
};

static inline void note_alert(const SSL *ssl, int where, int value)
{
    struct talk *talk = SSL_get_app_data(ssl);
    if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && value >> 8 == SSL3_AL_FATAL)
        talk->alert = value & 0xff;
}

static inline bool step(SSL *ssl, bool *ret_failed)
{
    int rc = SSL_do_handshake(ssl);
    int error = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, rc);
    *ret_failed = *ret_failed || (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ &&
                                  error != SSL_ERROR_WANT_WRITE);
    return rc == 1;
}

static inline void open_client(struct talk *talk, const struct client *how)
{
    *talk = (struct talk){ .context = SSL_CTX_new(TLS_client_method()), .alert = -1 };
    SSL_CTX *context = talk->context;
    assert_non_null(context);
    assert_true(SSL_CTX_set_min_proto_version(context, how->lowest ? how->lowest : TLS1_VERSION));
    assert_true(SSL_CTX_set_max_proto_version(context, how->highest));
    if (how->suites)
        assert_true(SSL_CTX_set_cipher_list(context, how->suites));
    if (how->groups)
        assert_true(SSL_CTX_set1_groups_list(context, how->groups));
    if (how->protocols)
        assert_int_equal(SSL_CTX_set_alpn_protos(context, (const unsigned char *)how->protocols,
                                                 (unsigned)strlen(how->protocols)),
                         0);
    talk->client = SSL_new(context);
    assert_non_null(talk->client);
    if (how->host)
        assert_true(SSL_set_tlsext_host_name(talk->client, how->host));
    if (how->session)
        assert_true(SSL_set_session(talk->client, how->session));
    SSL_set_app_data(talk->client, talk);
    SSL_set_info_callback(talk->client, note_alert);
    SSL_set_connect_state(talk->client);
}

static inline void join(struct talk *talk)
{
    BIO *ours, *theirs;
    assert_true(BIO_new_bio_pair(&ours, 65536, &theirs, 65536));
    SSL_set_bio(talk->client, ours, ours);
    SSL_set_bio(talk->server, theirs, theirs);
}

/* Talks until both sides are connected or one has failed. After a success, one byte has gone each
 * way, so the client has its tickets. */
static inline void talk_on(struct talk *talk)
{
    bool client_done = false, server_done = false, failed = false;
    for (unsigned i = 0; i < 20 && !failed && !(client_done && server_done); i++) {
        client_done = step(talk->client, &failed);
        server_done = step(talk->server, &failed);
    }
    char byte = 0;
    if (failed) { /* the peer of the side that failed reads its alert */
        (void)SSL_read(talk->client, &byte, 1);
        (void)SSL_read(talk->server, &byte, 1);
        ERR_clear_error();
        return;
    }
    assert_true(client_done && server_done);
    assert_int_equal(SSL_write(talk->client, "c", 1), 1);
    assert_int_equal(SSL_read(talk->server, &byte, 1), 1);
    assert_int_equal(byte, 'c');
    assert_int_equal(SSL_write(talk->server, "s", 1), 1);
    assert_int_equal(SSL_read(talk->client, &byte, 1), 1);
    assert_int_equal(byte, 's');
    talk->connected = true;
}

static inline struct talk *talk_to(struct tls_server *server, const struct client *how)
{
    struct talk *talk = calloc(1, sizeof(*talk));
    open_client(talk, how);
    talk->server = tls_server_accept(server);
    assert_non_null(talk->server);
    join(talk);
    talk_on(talk);
    return talk;
}

/* Without a shutdown, OpenSSL takes the session for a bad one. */
static inline void end_talk(struct talk *talk)
{
    SSL_set_shutdown(talk->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_set_shutdown(talk->server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(talk->client);
    SSL_free(talk->server);
    SSL_CTX_free(talk->context);
    free(talk);
}

static inline struct tls_server *new_server(const struct tls_server_plan *plan)
{
    char why[TLS_WHY_MAX] = "";
    struct tls_server *server = tls_server_new(plan, why);
    if (!server)
        fail_msg("%s", why);
    return server;
}
