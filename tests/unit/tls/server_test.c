/* SPDX-License-Identifier: MIT
 *
 * The server's side of handshakes: versions, suites, the choice of a site by the server name, ALPN,
 * and what a wrong configuration says.
 */
#include "base/buf.h"
#include "fixture.h"
#include "tls/connection.h"

struct fixture {
    struct tree tree;
    EVP_PKEY *ec, *rsa;
    struct tls_pair a, b, dual[2], wild;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    tree_make(&f->tree);
    f->ec = make_ec_key();
    f->rsa = EVP_RSA_gen(2048);
    assert_non_null(f->rsa);
    write_pair(&f->tree, "a", f->ec, "DNS:a.test,DNS:www.a.test");
    write_pair(&f->tree, "b", f->ec, "DNS:b.test");
    write_pair(&f->tree, "r", f->rsa, "DNS:a.test");
    write_pair(&f->tree, "wild", f->ec, "DNS:*.wild.test");
    f->a = pair_of(&f->tree, "a.crt", "a.key");
    f->b = pair_of(&f->tree, "b.crt", "b.key");
    f->wild = pair_of(&f->tree, "wild.crt", "wild.key");
    f->dual[0] = pair_of(&f->tree, "r.crt", "r.key");
    f->dual[1] = pair_of(&f->tree, "a.crt", "a.key");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    free_pair(&f->a);
    free_pair(&f->b);
    free_pair(&f->wild);
    free_pair(&f->dual[0]);
    free_pair(&f->dual[1]);
    EVP_PKEY_free(f->ec);
    EVP_PKEY_free(f->rsa);
    tree_remove(&f->tree);
    return 0;
}

static struct tls_server *one_site(const struct tls_pair *pair, enum tls_policy policy,
                                   enum tls_version lowest)
{
    const struct tls_server_site site = {
        .name = "only", .pairs = pair, .pair_count = 1, .lowest = lowest
    };
    return new_server(
        &(struct tls_server_plan){ .sites = &site, .site_count = 1, .policy = policy });
}

static struct tls_server *one_site_for_http2(const struct tls_pair *pair)
{
    const struct tls_server_site site = { .name = "only", .pairs = pair, .pair_count = 1 };
    return new_server(&(struct tls_server_plan){ .sites = &site, .site_count = 1, .http2 = true });
}

static bool covers(struct tls_server *server, const SSL *ssl, struct span host)
{
    return tls_server_covers(server, tls_server_site_of(ssl), host);
}

static void speaks_the_versions_of_the_policy(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        enum tls_policy policy;
        enum tls_version lowest;
        int client;
        bool connects;
    } cases[] = {
        { TLS_INTERMEDIATE, TLS_1_2, TLS1_2_VERSION, true },
        { TLS_INTERMEDIATE, TLS_1_2, TLS1_3_VERSION, true },
        { TLS_INTERMEDIATE, TLS_1_3, TLS1_2_VERSION, false },
        { TLS_INTERMEDIATE, TLS_1_3, TLS1_3_VERSION, true },
        { TLS_MODERN, TLS_1_2, TLS1_2_VERSION, false },
        { TLS_MODERN, TLS_1_2, TLS1_3_VERSION, true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tls_server *server = one_site(&f->a, cases[i].policy, cases[i].lowest);
        struct talk *talk = talk_to(
            server, &(struct client){ .lowest = cases[i].client, .highest = cases[i].client });
        assert_int_equal(talk->connected, cases[i].connects);
        if (talk->connected)
            assert_int_equal(SSL_version(talk->client), cases[i].client);
        else
            assert_int_equal(talk->alert, SSL_AD_PROTOCOL_VERSION);
        assert_int_equal(tls_server_site_of(talk->server), 0);
        assert_false(SSL_session_reused(talk->server));
        end_talk(talk);
        tls_server_free(server);
    }
}

static void refuses_suites_outside_of_the_policy(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        const char *suites;
        bool connects;
    } cases[] = {
        { "ECDHE-ECDSA-AES128-GCM-SHA256", true },
        { "ECDHE-ECDSA-AES256-GCM-SHA384", true },
        { "ECDHE-ECDSA-CHACHA20-POLY1305", true },
        { "ECDHE-ECDSA-AES128-SHA256", false },
        { "ECDHE-ECDSA-AES128-SHA", false },
        { "DHE-RSA-AES128-GCM-SHA256", false },
        { "AES128-GCM-SHA256", false },
    };
    struct tls_server *server = one_site(&f->a, TLS_INTERMEDIATE, TLS_1_2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct talk *talk = talk_to(
            server, &(struct client){ .highest = TLS1_2_VERSION, .suites = cases[i].suites });
        if (talk->connected != cases[i].connects)
            fail_msg("%s", cases[i].suites);
        if (talk->connected)
            assert_string_equal(SSL_get_cipher_name(talk->client), cases[i].suites);
        else
            assert_int_equal(talk->alert, SSL_AD_HANDSHAKE_FAILURE);
        end_talk(talk);
    }
    tls_server_free(server);
}

static void accepts_the_groups_of_the_policy(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        const char *group;
        int connects;
    } cases[] = { { "X25519MLKEM768", true },
                  { "X25519", true },
                  { "P-256", true },
                  { "P-384", true },
                  { "P-521", false } };
    SSL_CTX *knows = SSL_CTX_new(TLS_client_method());
    struct tls_server *server = one_site(&f->a, TLS_INTERMEDIATE, TLS_1_2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!SSL_CTX_set1_groups_list(knows, cases[i].group))
            continue; /* before OpenSSL 3.5 */
        struct talk *talk = talk_to(server, &(struct client){ .groups = cases[i].group });
        if (talk->connected != cases[i].connects)
            fail_msg("%s", cases[i].group);
        end_talk(talk);
    }
    SSL_CTX_free(knows);
    ERR_clear_error();
    tls_server_free(server);
}

static void gives_each_client_the_kind_of_key_that_it_can_verify(void **state)
{
    const struct fixture *f = *state;
    const struct tls_server_site site = { .name = "dual", .pairs = f->dual, .pair_count = 2 };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = &site, .site_count = 1 });
    static const struct {
        const char *suites;
        int kind;
    } cases[] = { { "ECDHE-RSA-AES128-GCM-SHA256", EVP_PKEY_RSA },
                  { "ECDHE-ECDSA-AES128-GCM-SHA256", EVP_PKEY_EC } };
    for (size_t i = 0; i < 2; i++) {
        struct talk *talk = talk_to(
            server, &(struct client){ .highest = TLS1_2_VERSION, .suites = cases[i].suites });
        assert_true(talk->connected);
        X509 *shown = SSL_get1_peer_certificate(talk->client);
        assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(shown)), cases[i].kind);
        X509_free(shown);
        /* Only one of the two has the second name. */
        assert_true(covers(server, talk->server, SPAN("a.test")));
        assert_false(covers(server, talk->server, SPAN("www.a.test")));
        end_talk(talk);
    }
    assert_non_null(tls_server_identity(server, 1));
    assert_null(tls_server_identity(server, 2));
    tls_server_free(server);
}

static void does_not_renegotiate_compress_or_take_early_data(void **state)
{
    const struct fixture *f = *state;
    struct tls_server *server = one_site(&f->a, TLS_INTERMEDIATE, TLS_1_2);
    struct talk *talk = talk_to(server, &(struct client){ .highest = TLS1_2_VERSION });
    char byte;
    bool failed = false;
    assert_true(talk->connected);
    assert_int_equal(SSL_renegotiate(talk->client), 1);
    for (unsigned i = 0; i < 4 && !failed; i++) {
        (void)step(talk->client, &failed);
        (void)SSL_read(talk->server, &byte, 1);
    }
    assert_int_equal(SSL_num_renegotiations(talk->server), 0);
    /* Versions of OpenSSL and its configuration file differ in what they allow without these. */
    assert_true(SSL_get_options(talk->server) & SSL_OP_NO_RENEGOTIATION);
    assert_true(SSL_get_options(talk->server) & SSL_OP_NO_COMPRESSION);
    assert_int_equal(SSL_get_max_early_data(talk->server), 0);
    assert_true(failed);
    ERR_clear_error();
    end_talk(talk);
    tls_server_free(server);
}

/* ---- names ---- */

static const char *const a_hosts[] = { "a.test", "www.a.test", NULL };
static const char *const b_hosts[] = { "b.test", "deep.wild.test", NULL };
static const char *const wild_hosts[] = { "*.wild.test", NULL };
static const char *const deep_hosts[] = { "*.deep.wild.test", NULL };

/* Which site is chosen, and whose certificate is shown, with the names of three sites. */
static void chooses_the_site_by_the_server_name(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        const char *host;
        size_t site;
        const char *shown;
    } cases[] = {
        { NULL, 0, "a" },
        { "a.test", 0, "a" },
        { "www.a.test", 0, "a" },
        { "b.test", 1, "b" },
        { "B.TeSt", 1, "b" },
        { "b.test.", 1, "b" },
        { "x.wild.test", 2, "wild" },
        { "y.x.wild.test", 2, "wild" },
        { "deep.wild.test", 1, "b" },
        { "x.deep.wild.test", 3, "a" },
        { "wild.test", 0, "a" },
        { "unknown.test", 0, "a" },
        { ".", 0, "a" },
        { "*.wild.test", 2, "wild" },
        { "127.0.0.1", 0, "a" },
        { "b.test/", 0, "a" },
        { "\xff\xfe", 0, "a" },
        { " b.test", 0, "a" },
    };
    const struct tls_server_site sites[] = {
        { .name = "a", .hosts = a_hosts, .pairs = &f->a, .pair_count = 1 },
        { .name = "b", .hosts = b_hosts, .pairs = &f->b, .pair_count = 1 },
        { .name = "wild", .hosts = wild_hosts, .pairs = &f->wild, .pair_count = 1 },
        { .name = "none", .hosts = deep_hosts },
    };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = sites, .site_count = 4 });
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const char *host = cases[i / 2].host;
        struct talk *talk = talk_to(
            server,
            &(struct client){ .host = host, .highest = i % 2 ? TLS1_2_VERSION : TLS1_3_VERSION });
        assert_true(talk->connected);
        X509 *shown = SSL_get1_peer_certificate(talk->client);
        char name[32] = "";
        X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof(name));
        if (tls_server_site_of(talk->server) != cases[i / 2].site ||
            strcmp(name, cases[i / 2].shown) != 0)
            fail_msg("%s: site %zu, certificate %s", host ? host : "no name",
                     tls_server_site_of(talk->server), name);
        X509_free(shown);
        end_talk(talk);
    }
    tls_server_free(server);
}

static void gives_unknown_names_to_the_site_without_hosts(void **state)
{
    const struct fixture *f = *state;
    const struct tls_server_site sites[] = {
        { .name = "a", .hosts = a_hosts, .pairs = &f->a, .pair_count = 1 },
        { .name = "b", .pairs = &f->b, .pair_count = 1 },
    };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = sites, .site_count = 2 });
    static const char *const hosts[] = { "unknown.test", NULL, "a.test" };
    for (size_t i = 0; i < 3; i++) {
        struct talk *talk = talk_to(server, &(struct client){ .host = hosts[i] });
        assert_true(talk->connected);
        assert_int_equal(tls_server_site_of(talk->server), i < 2 ? 1 : 0);
        assert_int_equal(covers(server, talk->server, SPAN("b.test")), i < 2);
        assert_int_equal(covers(server, talk->server, SPAN("a.test")), i == 2);
        end_talk(talk);
    }
    tls_server_free(server);
}

static void takes_the_lowest_version_of_the_site_that_was_named(void **state)
{
    const struct fixture *f = *state;
    for (unsigned strict = 0; strict < 2; strict++) {
        const struct tls_server_site sites[] = {
            { .name = "a",
              .hosts = a_hosts,
              .pairs = &f->a,
              .pair_count = 1,
              .lowest = strict == 0 ? TLS_1_3 : TLS_1_2 },
            { .name = "b", .hosts = b_hosts, .lowest = strict == 1 ? TLS_1_3 : TLS_1_2 },
        };
        struct tls_server *server =
            new_server(&(struct tls_server_plan){ .sites = sites, .site_count = 2 });
        for (unsigned i = 0; i < 2; i++) {
            struct talk *talk = talk_to(
                server, &(struct client){ .host = sites[i].hosts[0], .highest = TLS1_2_VERSION });
            assert_int_equal(talk->connected, i != strict);
            end_talk(talk);
        }
        tls_server_free(server);
    }
}

static void acknowledges_a_name_that_it_has_used(void **state)
{
    const struct fixture *f = *state;
    const struct tls_server_site sites[] = {
        { .name = "a", .hosts = a_hosts, .pairs = &f->a, .pair_count = 1 },
        { .name = "b", .hosts = b_hosts, .pairs = &f->b, .pair_count = 1 },
    };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = sites, .site_count = 2 });
    static const char *const hosts[] = { "b.test", "unknown.test" };
    for (unsigned i = 0; i < 2; i++) {
        struct talk *talk = talk_to(server, &(struct client){ .host = hosts[i] });
        assert_true(talk->connected);
        /* The server's session has a name if the server has acknowledged it. */
        const char *name = SSL_SESSION_get0_hostname(SSL_get_session(talk->server));
        assert_int_equal(name != NULL, i == 0);
        end_talk(talk);
    }
    tls_server_free(server);
}

/* Sends a ClientHello of our own with a server_name extension, and returns whether the server
 * continued. The ClientHello offers one suite of TLS 1.2. */
static bool survives(struct tls_server *server, struct span extension, size_t *ret_site)
{
    static const char head[] = "\x03\x03" /* version, 32 random bytes, no session */
                               "0123456789abcdef0123456789abcdef\0"
                               "\x00\x02\xc0\x2b" /* ECDHE-ECDSA-AES128-GCM-SHA256 */
                               "\x01\x00";
    static const char tail[] = "\x00\x0a\x00\x04\x00\x02\x00\x17"  /* groups: P-256 */
                               "\x00\x0d\x00\x04\x00\x02\x04\x03"; /* ECDSA with SHA-256 */
    char hello[2048];
    struct buf message = buf_over(hello, sizeof(hello));
    size_t extensions = 4 + extension.len + sizeof(tail) - 1;
    size_t body = sizeof(head) - 1 + 2 + extensions;
    const unsigned char record[] = { 22,
                                     3,
                                     1,
                                     (unsigned char)((body + 4) >> 8),
                                     (unsigned char)(body + 4),
                                     1,
                                     0,
                                     (unsigned char)(body >> 8),
                                     (unsigned char)body };
    const unsigned char lengths[] = {
        (unsigned char)(extensions >> 8),    (unsigned char)extensions,   0, 0,
        (unsigned char)(extension.len >> 8), (unsigned char)extension.len
    };
    buf_add(&message, span_of((const char *)record, sizeof(record)));
    buf_add(&message, span_of(head, sizeof(head) - 1));
    buf_add(&message, span_of((const char *)lengths, sizeof(lengths)));
    buf_add(&message, extension);
    buf_add(&message, span_of(tail, sizeof(tail) - 1));
    assert_false(message.overflow);

    BIO *ours, *theirs;
    SSL *ssl = tls_server_accept(server);
    assert_true(BIO_new_bio_pair(&ours, 65536, &theirs, 65536));
    SSL_set_bio(ssl, theirs, theirs);
    assert_int_equal(BIO_write(ours, message.at, (int)message.len), message.len);
    int rc = SSL_do_handshake(ssl);
    bool waits = SSL_get_error(ssl, rc) == SSL_ERROR_WANT_READ;
    *ret_site = tls_server_site_of(ssl);
    SSL_free(ssl);
    BIO_free(ours);
    ERR_clear_error();
    return waits;
}

static void survives_malformed_names(void **state)
{
    const struct fixture *f = *state;
    const struct tls_server_site sites[] = {
        { .name = "a", .hosts = a_hosts, .pairs = &f->a, .pair_count = 1 },
        { .name = "b", .hosts = b_hosts, .pairs = &f->b, .pair_count = 1 },
    };
    static const struct {
        struct span extension;
        bool continues;
        size_t site;
    } cases[] = {
        { { "\0\x09\0\0\6b.test", 11 }, true, 1 },
        { { "\0\x0a\0\0\7b.test\0", 12 }, false, 0 }, /* NUL behind the name */
        { { "\0\x0b\0\0\x08"
            "b\0b.test",
            13 },
          false,
          0 }, /* NUL in the name */
        { { "", 0 }, false, 0 },
        { { "\0", 1 }, false, 0 },
        { { "\0\3\0\0\0", 5 }, true, 0 },           /* an empty name */
        { { "\0\x09\1\0\6b.test", 11 }, false, 0 }, /* another type of name */
        { { "\0\x09\0\xff\xff"
            "b.test",
            11 },
          false,
          1 }, /* a length behind the end */
        { { "\0\xff\0\0\6b.test", 11 }, false, 1 },
    };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = sites, .site_count = 2 });
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t site;
        bool continues = survives(server, cases[i].extension, &site);
        if (continues != cases[i].continues || site != cases[i].site)
            fail_msg("case %zu: continues %d, site %zu", i, continues, site);
    }
    for (size_t len = 250; len <= 260; len++) {
        char extension[5 + 260] = { (char)((len + 3) >> 8), (char)(len + 3), 0, (char)(len >> 8),
                                    (char)len };
        size_t site;
        memset(extension + 5, 'a', len);
        assert_int_equal(survives(server, span_of(extension, 5 + len), &site), len <= 255);
        assert_int_equal(site, 0);
    }
    tls_server_free(server);
}

static void serves_many_sites(void **state)
{
    const struct fixture *f = *state;
    enum { SITES = 500 };
    static char names[SITES][24];
    static const char *hosts[SITES][2];
    static struct tls_server_site sites[SITES];
    for (size_t i = 0; i < SITES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "site-%zu.test", i);
        hosts[i][0] = names[i];
        sites[i] = (struct tls_server_site){ .name = names[i], .hosts = hosts[i] };
    }
    sites[0].pairs = sites[400].pairs = &f->a;
    sites[0].pair_count = sites[400].pair_count = 1;
    sites[300].pairs = &f->b;
    sites[300].pair_count = 1;
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = sites, .site_count = SITES });
    assert_non_null(tls_server_identity(server, 1)); /* the files of site 0 are read once */
    assert_null(tls_server_identity(server, 2));
    for (size_t i = 0; i < SITES; i += 100) {
        struct talk *talk = talk_to(server, &(struct client){ .host = names[i] });
        assert_true(talk->connected);
        assert_int_equal(tls_server_site_of(talk->server), i);
        assert_int_equal(covers(server, talk->server, SPAN("b.test")), i == 300);
        end_talk(talk);
    }
    tls_server_free(server);
}

/* ---- ALPN ---- */

struct offer {
    const char *protocols;
    const char *agreed; /* NULL: refused */
};

static void assert_agrees(struct tls_server *server, const struct offer *offer)
{
    struct talk *talk = talk_to(server, &(struct client){ .protocols = offer->protocols });
    const struct tls_connection connection = { .ssl = talk->server };
    const unsigned char *at;
    unsigned len;
    SSL_get0_alpn_selected(talk->client, &at, &len);
    assert_int_equal(talk->connected, offer->agreed != NULL);
    if (!talk->connected) {
        assert_int_equal(talk->alert, SSL_AD_NO_APPLICATION_PROTOCOL);
    } else {
        assert_true(span_equal(span_of((const char *)at, len), span_text(offer->agreed)));
        assert_int_equal(tls_connection_is_http2(&connection), strcmp(offer->agreed, "h2") == 0);
    }
    end_talk(talk);
}

static void agrees_on_http_1_1_or_refuses(void **state)
{
    const struct fixture *f = *state;
    static const struct offer offers[] = {
        { NULL, "" },
        { "\x08http/1.1", "http/1.1" },
        { "\x02h2\x08http/1.1", "http/1.1" },
        { "\x08http/1.0\x08http/1.1", "http/1.1" },
        { "\x02h2", NULL },
        { "\x0a"
          "acme-tls/1",
          NULL },
        { "\x08HTTP/1.1", NULL },
    };
    struct tls_server *server = one_site(&f->a, TLS_INTERMEDIATE, TLS_1_2);
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++)
        assert_agrees(server, &offers[i]);
    tls_server_free(server);
}

static void prefers_http_2_where_it_is_on(void **state)
{
    const struct fixture *f = *state;
    static const struct offer offers[] = {
        { NULL, "" },
        { "\x08http/1.1", "http/1.1" },
        { "\x02h2\x08http/1.1", "h2" },
        { "\x08http/1.1\x02h2", "h2" },
        { "\x02h2", "h2" },
        { "\x02h3\x03h2c\x05h2-14", NULL },
        { "\x02H2", NULL },
    };
    struct tls_server *server = one_site_for_http2(&f->a);
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++)
        assert_agrees(server, &offers[i]);
    tls_server_free(server);
}

/* ---- wrong configurations ---- */

static void assert_refused(const struct tls_server_site *sites, size_t count, const char *words)
{
    char why[TLS_WHY_MAX] = "";
    assert_null(
        tls_server_new(&(struct tls_server_plan){ .sites = sites, .site_count = count }, why));
    if (!strstr(why, words) || strchr(why, '\n'))
        fail_msg("`%s` lacks `%s`", why, words);
    assert_int_equal(ERR_peek_error(), 0);
}

static void says_what_is_wrong_with_the_files_of_a_site(void **state)
{
    const struct fixture *f = *state;
    const struct tls_pair mixed = { f->a.certificate, f->dual[0].key };
    const struct tls_pair absent = { f->a.certificate, "/absent/key" };
    const struct tls_pair same[2] = { f->a, f->b };
    EVP_PKEY *short_key = EVP_RSA_gen(1024);
    write_pair(&f->tree, "short", short_key, "DNS:short.test");
    struct tls_pair weak = pair_of(&f->tree, "short.crt", "short.key");
    const struct tls_server_site sites[] = {
        { .name = "first", .pairs = &mixed, .pair_count = 1 },
        { .name = "first", .pairs = &absent, .pair_count = 1 },
        { .name = "twice", .pairs = same, .pair_count = 2 },
        { .name = "weak", .pairs = &weak, .pair_count = 1 },
        { .name = "none" },
    };
    assert_refused(&sites[0], 1, "r.key does not belong to the certificate ");
    assert_refused(&sites[1], 1, "cannot read the key /absent/key (No such file or directory)");
    assert_refused(&sites[2], 1, "site twice has two certificates with keys of the same kind");
    assert_refused(&sites[3], 1, "short.crt cannot be used (ee key too small)");
    assert_refused(&sites[4], 1, "site none has no certificate. Set tls-certificate and tls-key.");
    const struct tls_server_site later[] = { { .name = "good", .pairs = &f->a, .pair_count = 1 },
                                             sites[0] };
    assert_refused(later, 2, "r.key does not belong to the certificate ");
    free_pair(&weak);
    EVP_PKEY_free(short_key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speaks_the_versions_of_the_policy),
        cmocka_unit_test(refuses_suites_outside_of_the_policy),
        cmocka_unit_test(accepts_the_groups_of_the_policy),
        cmocka_unit_test(gives_each_client_the_kind_of_key_that_it_can_verify),
        cmocka_unit_test(does_not_renegotiate_compress_or_take_early_data),
        cmocka_unit_test(chooses_the_site_by_the_server_name),
        cmocka_unit_test(gives_unknown_names_to_the_site_without_hosts),
        cmocka_unit_test(takes_the_lowest_version_of_the_site_that_was_named),
        cmocka_unit_test(acknowledges_a_name_that_it_has_used),
        cmocka_unit_test(survives_malformed_names),
        cmocka_unit_test(serves_many_sites),
        cmocka_unit_test(agrees_on_http_1_1_or_refuses),
        cmocka_unit_test(prefers_http_2_where_it_is_on),
        cmocka_unit_test(says_what_is_wrong_with_the_files_of_a_site),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
