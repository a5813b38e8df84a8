/* SPDX-License-Identifier: MIT
 *
 * Reading certificates and keys: what is refused and how the reason reads, what only warns, and
 * which hosts a certificate covers.
 */
#include "fixture.h"

struct fixture {
    struct tree tree;
    EVP_PKEY *root_key, *middle_key, *key, *other_key;
    X509 *root, *middle, *leaf;
    int64_t now_s;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    *f = (struct fixture){ .now_s = time(NULL) };
    tree_make(&f->tree);
    f->root_key = make_ec_key();
    f->middle_key = make_ec_key();
    f->key = make_ec_key();
    f->other_key = make_ec_key();
    f->root = issue_certificate(
        &(struct issue){ .key = f->root_key, .subject = "root", .authority = true });
    f->middle = issue_certificate(&(struct issue){ .key = f->middle_key,
                                                   .issuer = f->root,
                                                   .issuer_key = f->root_key,
                                                   .subject = "middle",
                                                   .authority = true });
    f->leaf = issue_certificate(&(struct issue){ .key = f->key,
                                                 .issuer = f->middle,
                                                 .issuer_key = f->middle_key,
                                                 .subject = "leaf",
                                                 .names = "DNS:leaf.test" });
    write_key(&f->tree, "key", f->key);
    write_key(&f->tree, "other-key", f->other_key);
    write_chain(&f->tree, "chain", f->leaf, f->middle, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    X509_free(f->root);
    X509_free(f->middle);
    X509_free(f->leaf);
    EVP_PKEY_free(f->root_key);
    EVP_PKEY_free(f->middle_key);
    EVP_PKEY_free(f->key);
    EVP_PKEY_free(f->other_key);
    tree_remove(&f->tree);
    return 0;
}

static struct tls_identity *load(const struct fixture *f, const char *certificate, const char *key,
                                 char why[TLS_WHY_MAX])
{
    struct tls_pair pair = pair_of(&f->tree, certificate, key);
    struct tls_identity *identity = tls_identity_new(&pair, why);
    free_pair(&pair);
    assert_int_equal(ERR_peek_error(), 0);
    return identity;
}

static struct tls_identity *load_good(const struct fixture *f, const char *certificate,
                                      const char *key)
{
    char why[TLS_WHY_MAX] = "";
    struct tls_identity *identity = load(f, certificate, key, why);
    if (!identity)
        fail_msg("%s", why);
    return identity;
}

/* The reason is one line, and has these words. */
static void assert_refused(const struct fixture *f, const char *certificate, const char *key,
                           const char *words)
{
    char why[TLS_WHY_MAX] = "";
    assert_null(load(f, certificate, key, why));
    if (!strstr(why, words) || strchr(why, '\n') || !strstr(why, f->tree.path))
        fail_msg("`%s` lacks `%s`", why, words);
}

static void reads_a_chain_and_its_key(void **state)
{
    const struct fixture *f = *state;
    struct tls_identity *identity = load_good(f, "chain", "key");
    unsigned char digest[32];
    char text[TLS_WHY_MAX], fingerprint[4];
    assert_int_equal(X509_cmp(identity->leaf, f->leaf), 0);
    assert_int_equal(sk_X509_num(identity->chain), 1);
    assert_true(identity->has_intermediate);
    assert_false(identity->self_signed);
    assert_string_equal(identity->names[0], "leaf.test");
    assert_null(identity->names[1]);
    assert_in_range(identity->begins_s, f->now_s - DAY_S, f->now_s - DAY_S + 600);
    assert_in_range(identity->ends_s, f->now_s + 100 * DAY_S, f->now_s + 100 * DAY_S + 600);
    assert_true(X509_digest(f->leaf, EVP_sha256(), digest, NULL));
    assert_int_equal(strlen(identity->fingerprint), 95);
    (void)snprintf(fingerprint, sizeof(fingerprint), ":%02X", digest[31]);
    assert_string_equal(identity->fingerprint + 92, fingerprint);
    assert_false(tls_identity_warning(identity, 0, f->now_s, text));
    tls_identity_free(identity);
}

static void reads_a_certificate_and_its_key_from_one_file(void **state)
{
    const struct fixture *f = *state;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_true(BIO_puts(bio, "a comment\n") > 0);
    assert_true(PEM_write_bio_PrivateKey(bio, f->root_key, NULL, NULL, 0, NULL, NULL));
    assert_true(PEM_write_bio_X509(bio, f->root));
    write_bio(&f->tree, "both", bio);
    struct tls_identity *identity = load_good(f, "both", "both");
    assert_true(identity->self_signed);
    assert_false(identity->has_intermediate);
    tls_identity_free(identity);
}

/* As `openssl ecparam -genkey` writes it. */
static void reads_a_key_behind_its_parameters(void **state)
{
    const struct fixture *f = *state;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_true(BIO_puts(bio, "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"
                              "-----END EC PARAMETERS-----\n") > 0);
    assert_true(PEM_write_bio_PrivateKey_traditional(bio, f->key, NULL, NULL, 0, NULL, NULL));
    write_bio(&f->tree, "parameters", bio);
    tls_identity_free(load_good(f, "chain", "parameters"));
}

static void names_the_file_that_cannot_be_read(void **state)
{
    const struct fixture *f = *state;
    assert_refused(f, "absent", "key", "absent (No such file or directory). Check the path.");
    assert_refused(f, "chain", "absent", "cannot read the key ");
    tree_folder(&f->tree, "folder");
    assert_refused(f, "folder", "key", "folder (Invalid argument). Give a regular file.");
    assert_int_equal(mkfifoat(f->tree.fd, "fifo", 0600), 0);
    assert_refused(f, "fifo", "key", "Give a regular file.");

    int fd = openat(f->tree.fd, "large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, TLS_FILE_MAX + 1), 0);
    assert_int_equal(close(fd), 0);
    assert_refused(f, "large", "key", "Give a PEM file of at most 1 MiB.");
}

static void refuses_files_without_a_certificate_or_a_key(void **state)
{
    const struct fixture *f = *state;
    tree_write(&f->tree, "empty", "");
    tree_write(&f->tree, "text", "hello\n");
    assert_refused(f, "empty", "key", "empty has no certificate in PEM form.");
    assert_refused(f, "text", "key", "text has no certificate in PEM form.");
    assert_refused(f, "key", "key", "key has no certificate in PEM form.");
    assert_refused(f, "chain", "empty", "empty has no private key in PEM form");
    assert_refused(f, "chain", "chain", "chain has no private key in PEM form");
}

static void names_the_certificate_that_is_damaged(void **state)
{
    const struct fixture *f = *state;
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;
    assert_true(PEM_write_bio_X509(bio, f->leaf));
    long first = BIO_get_mem_data(bio, &text);
    assert_true(PEM_write_bio_X509(bio, f->middle));
    long len = BIO_get_mem_data(bio, &text);
    tree_write_bytes(&f->tree, "cut-second", span_of(text, (size_t)len - 40));
    assert_refused(f, "cut-second", "key", "certificate number 2 in the file ");
    tree_write_bytes(&f->tree, "cut-first", span_of(text, (size_t)first - 40));
    assert_refused(f, "cut-first", "key", "certificate number 1 in the file ");
    memcpy(text + 60, "!!!!", 4);
    tree_write_bytes(&f->tree, "changed", span_of(text, (size_t)len));
    assert_refused(f, "changed", "key", "certificate number 1 in the file ");
    BIO_free(bio);
}

static void refuses_a_file_with_too_many_certificates(void **state)
{
    const struct fixture *f = *state;
    BIO *bio = BIO_new(BIO_s_mem());
    for (unsigned i = 0; i < TLS_CHAIN_MAX + 1; i++)
        assert_true(PEM_write_bio_X509(bio, i == 0 ? f->leaf : f->middle));
    char *text;
    long len = BIO_get_mem_data(bio, &text);
    tree_write_bytes(&f->tree, "many", span_of(text, (size_t)len));
    tls_identity_free(load_good(f, "many", "key"));
    assert_true(PEM_write_bio_X509(bio, f->middle));
    write_bio(&f->tree, "too-many", bio);
    assert_refused(f, "too-many", "key", "too-many has more than 21 certificates.");
}

static void refuses_an_encrypted_key_and_names_the_command(void **state)
{
    const struct fixture *f = *state;
    static unsigned char password[] = "sesame";
    BIO *bio = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio_PKCS8PrivateKey(bio, f->key, EVP_aes_128_cbc(), (char *)password, 6,
                                              NULL, NULL));
    write_bio(&f->tree, "encrypted", bio);
    assert_refused(f, "chain", "encrypted", "encrypted is encrypted, and weir does not ask");
    bio = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio_PrivateKey_traditional(bio, f->key, EVP_aes_128_cbc(), password, 6,
                                                     NULL, NULL));
    write_bio(&f->tree, "old-encrypted", bio);
    assert_refused(f, "chain", "old-encrypted", "openssl pkey -in ");
}

static void refuses_a_key_of_another_certificate(void **state)
{
    const struct fixture *f = *state;
    assert_refused(f, "chain", "other-key", "other-key does not belong to the certificate ");
}

static void says_when_the_leaf_is_not_first(void **state)
{
    const struct fixture *f = *state;
    write_chain(&f->tree, "reversed", f->middle, f->leaf, NULL);
    assert_refused(f, "reversed", "key", "key belongs to certificate number 2 in the file ");
}

/* The warnings of a certificate at a time are those that begin with these words, in this order. */
static void assert_warnings(const struct tls_identity *identity, int64_t now_s,
                            const char *const *words)
{
    char text[TLS_WHY_MAX];
    unsigned i = 0;
    for (; words[i]; i++) {
        assert_true(tls_identity_warning(identity, i, now_s, text));
        if (!strstr(text, words[i]) || strchr(text, '\n'))
            fail_msg("`%s` lacks `%s`", text, words[i]);
    }
    if (tls_identity_warning(identity, i, now_s, text))
        fail_msg("one more: %s", text);
}

static void warns_about_dates_names_and_order(void **state)
{
    const struct fixture *f = *state;
    struct tls_identity *identity = load_good(f, "chain", "key");
    assert_warnings(identity, identity->begins_s - 1,
                    (const char *const[]){ "is valid from ", NULL });
    assert_warnings(identity, identity->begins_s, (const char *const[]){ NULL });
    assert_warnings(identity, identity->ends_s, (const char *const[]){ NULL });
    assert_warnings(identity, identity->ends_s + 1, (const char *const[]){ " ended at ", NULL });
    tls_identity_free(identity);

    write_chain(&f->tree, "disorder", f->leaf, f->root, f->middle);
    identity = load_good(f, "disorder", "key");
    assert_warnings(identity, f->now_s,
                    (const char *const[]){ "certificate number 2 in the file ", NULL });
    tls_identity_free(identity);

    write_chain(&f->tree, "whole", f->leaf, f->middle, f->root);
    identity = load_good(f, "whole", "key");
    assert_warnings(identity, f->now_s, (const char *const[]){ NULL });
    tls_identity_free(identity);

    X509 *nameless = issue_certificate(&(struct issue){ .key = f->key,
                                                        .issuer = f->root,
                                                        .issuer_key = f->root_key,
                                                        .subject = "nameless.test",
                                                        .ends_s = f->now_s - 1 });
    write_chain(&f->tree, "nameless", nameless, NULL, NULL);
    identity = load_good(f, "nameless", "key");
    assert_warnings(identity, f->now_s,
                    (const char *const[]){ " ended at ", "(subjectAltName)",
                                           "has only the certificate of the server", NULL });
    assert_false(tls_identity_covers(identity, SPAN("nameless.test")));
    tls_identity_free(identity);
    X509_free(nameless);
}

static void reads_dates_after_2049(void **state)
{
    const struct fixture *f = *state;
    X509 *late = issue_certificate(&(struct issue){
        .key = f->key, .subject = "late", .names = "DNS:late", .ends_s = 4102444801 });
    write_chain(&f->tree, "late", late, NULL, NULL);
    struct tls_identity *identity = load_good(f, "late", "key");
    assert_int_equal(identity->ends_s, 4102444801); /* 2100-01-01T00:00:01Z */
    tls_identity_free(identity);
    X509_free(late);
}

/* The result of OpenSSL's own comparison. */
static bool is_covered_for_openssl(X509 *certificate, const char *host)
{
    char bare[64];
    (void)snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(host[0] == '[' ? host + 1 : host, "]"),
                   host[0] == '[' ? host + 1 : host);
    return X509_check_ip_asc(certificate, bare, 0) == 1 ||
           X509_check_host(certificate, host, strlen(host),
                           X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                               X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                           NULL) == 1;
}

static void covers_the_names_of_the_certificate_and_no_other(void **state)
{
    const struct fixture *f = *state;
    static const struct {
        const char *host;
        bool covered;
    } cases[] = {
        { "exact.test", true },    { "a.exact.test", false },     { "exact.test.evil", false },
        { "xexact.test", false },  { "upper.test", true },        { "a.wild.test", true },
        { "wild.test", false },    { "a.b.wild.test", false },    { ".wild.test", false },
        { "192.0.2.7", true },     { "192.0.2.8", false },        { "::1", true },
        { "[::1]", true },         { "[0:0:0:0:0:0:0:1]", true }, { "[::2]", false },
        { "a.localhost", false },  { "fab.part.test", false },    { "localhost", false },
        { "subject.test", false }, { "198.51.100.1", false },     { "7", false },
    };
    X509 *certificate = issue_certificate(&(struct issue){
        .key = f->key,
        .subject = "subject.test",
        .names = "DNS:exact.test,DNS:Upper.TEST,DNS:*.wild.test,IP:192.0.2.7,IP:::1,"
                 "DNS:*.localhost,DNS:f*.part.test,DNS:198.51.100.1,email:a@mail.test" });
    write_chain(&f->tree, "named", certificate, NULL, NULL);
    struct tls_identity *identity = load_good(f, "named", "key");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (tls_identity_covers(identity, span_text(cases[i].host)) != cases[i].covered)
            fail_msg("%s", cases[i].host);
        /* A dot at the front means something else for OpenSSL, and it takes a dNSName with an
         * address for a name. */
        if (cases[i].host[0] != '.' && strcmp(cases[i].host, "198.51.100.1") != 0 &&
            is_covered_for_openssl(certificate, cases[i].host) != cases[i].covered)
            fail_msg("OpenSSL has another opinion about %s", cases[i].host);
    }
    assert_true(tls_identity_covers(identity, SPAN("exact.test.")));
    assert_true(tls_identity_covers(identity, SPAN("*.wild.test")));
    assert_false(tls_identity_covers(identity, SPAN("*.exact.test")));
    assert_false(tls_identity_covers(identity, SPAN("")));
    assert_false(tls_identity_covers(identity, SPAN("exact.test\0.evil")));
    assert_false(tls_identity_covers(identity, SPAN("::1\0")));
    tls_identity_free(identity);
    X509_free(certificate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_chain_and_its_key),
        cmocka_unit_test(reads_a_certificate_and_its_key_from_one_file),
        cmocka_unit_test(reads_a_key_behind_its_parameters),
        cmocka_unit_test(names_the_file_that_cannot_be_read),
        cmocka_unit_test(refuses_files_without_a_certificate_or_a_key),
        cmocka_unit_test(names_the_certificate_that_is_damaged),
        cmocka_unit_test(refuses_a_file_with_too_many_certificates),
        cmocka_unit_test(refuses_an_encrypted_key_and_names_the_command),
        cmocka_unit_test(refuses_a_key_of_another_certificate),
        cmocka_unit_test(says_when_the_leaf_is_not_first),
        cmocka_unit_test(warns_about_dates_names_and_order),
        cmocka_unit_test(reads_dates_after_2049),
        cmocka_unit_test(covers_the_names_of_the_certificate_and_no_other),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
