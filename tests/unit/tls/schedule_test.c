/* SPDX-License-Identifier: MIT
 *
 * The key schedule of TLS 1.3 gives what OpenSSL's own gives, and the keys of RFC 8448.
 */
#include "tls/schedule.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct step {
    int mode;
    const char *digest;
    struct span key, salt, label, data; /* without `at`: absent */
};

static void add_bytes(OSSL_PARAM *params, size_t *count, const char *name, struct span bytes)
{
    if (bytes.at)
        params[(*count)++] =
            OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)bytes.at, bytes.len);
}

static int derive(const char *provider, const struct step *step, unsigned char *to, size_t len)
{
    int mode = step->mode;
    size_t count = 2;
    OSSL_PARAM params[8] = { OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
                             OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
                                                              (char *)(uintptr_t)step->digest, 0) };
    add_bytes(params, &count, OSSL_KDF_PARAM_KEY, step->key);
    add_bytes(params, &count, OSSL_KDF_PARAM_SALT, step->salt);
    add_bytes(params, &count, OSSL_KDF_PARAM_PREFIX, SPAN("tls13 "));
    add_bytes(params, &count, OSSL_KDF_PARAM_LABEL, step->label);
    add_bytes(params, &count, OSSL_KDF_PARAM_DATA, step->data);
    params[count] = OSSL_PARAM_construct_end();
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", provider);
    assert_non_null(kdf);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    int rc = EVP_KDF_derive(context, to, len, params);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    ERR_clear_error();
    return rc;
}

static void assert_same(const struct step *step, size_t len)
{
    unsigned char ours[64] = { 1 }, theirs[64] = { 2 };
    assert_int_equal(derive("provider=weir", step, ours, len), 1);
    assert_int_equal(derive("provider=default", step, theirs, len), 1);
    assert_memory_equal(ours, theirs, len);
}

static void gives_what_openssl_gives(void **state)
{
    (void)state;
    static const char *const digests[] = { "SHA2-256", "SHA256", "SHA2-384", "SHA384" };
    char a[64], b[64];
    assert_string_equal(tls_schedule_properties(), "?provider=weir");
    for (unsigned i = 0; i < 400; i++) {
        const size_t len = i % 4 < 2 ? 32 : 48, less = 1 + i % len;
        RAND_bytes((unsigned char *)a, sizeof(a));
        RAND_bytes((unsigned char *)b, sizeof(b));
        struct span absent = { NULL, 0 };
        struct span data = i % 3 == 0 ? absent : span_of(b, i % 3 == 1 ? 0 : len);
        assert_same(&(struct step){ EVP_KDF_HKDF_MODE_EXPAND_ONLY, digests[i % 4], span_of(a, len),
                                    absent, SPAN("c hs traffic"), data },
                    less);
        struct span key = i / 4 % 2 ? span_of(a, i % 5 == 0 ? 64 : len) : absent;
        struct span salt = i / 8 % 2 ? span_of(b, len) : absent;
        assert_same(&(struct step){ EVP_KDF_HKDF_MODE_EXTRACT_ONLY, digests[i % 4], key, salt,
                                    SPAN("derived"), absent },
                    len);
    }
}

static void refuses_what_no_handshake_asks_for(void **state)
{
    (void)state;
    static const char key[64] = "k", label[80] = "l";
    const struct step good = { EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", span_of(key, 32),
                               .label = SPAN("key") };
    unsigned char out[100];
    struct step step = good;
    assert_int_equal(derive("provider=weir", &step, out, 16), 1);
    assert_int_equal(derive("provider=weir", &step, out, 33), 0);
    step.digest = "SHA512";
    assert_int_equal(derive("provider=weir", &step, out, 16), 0);
    step = good;
    step.mode = EVP_KDF_HKDF_MODE_EXTRACT_AND_EXPAND;
    assert_int_equal(derive("provider=weir", &step, out, 16), 0);
    step = good;
    step.label = span_of(label, sizeof(label));
    assert_int_equal(derive("provider=weir", &step, out, 16), 0);
}

/* RFC 8448 section 3: the server's first traffic secret, and its key and nonce. */
static void derives_the_keys_of_the_example(void **state)
{
    (void)state;
    static const unsigned char secret[32] =
        "\xa1\x1a\xf9\xf0\x55\x31\xf8\x56\xad\x47\x11\x6b\x45\xa9\x50\x32"
        "\x82\x04\xb4\xf4\x4b\xfb\x6b\x3a\x4b\x4f\x1f\x3f\xcb\x63\x16\x43";
    static const unsigned char key[16] =
        "\x9f\x02\x28\x3b\x6c\x9c\x07\xef\xc2\x6b\xb9\xf2\xac\x92\xe3\x56";
    static const unsigned char iv[12] = "\xcf\x78\x2b\x88\xdd\x83\x54\x9a\xad\xf1\xe9\x84";
    struct span from = span_of((const char *)secret, sizeof(secret));
    unsigned char out[16];
    (void)tls_schedule_properties();
    assert_true(tls_schedule_expand(from, SPAN("key"), out, sizeof(key)));
    assert_memory_equal(out, key, sizeof(key));
    assert_true(tls_schedule_expand(from, SPAN("iv"), out, sizeof(iv)));
    assert_memory_equal(out, iv, sizeof(iv));
}

static void hands_over_the_first_traffic_secrets(void **state)
{
    (void)state;
    static const char key[32] = "key";
    struct tls_secret client = { .known = false }, server = { .known = false };
    struct step step = { EVP_KDF_HKDF_MODE_EXPAND_ONLY, "SHA256", span_of(key, 32),
                         .label = SPAN("c ap traffic") };
    unsigned char out[32];
    tls_schedule_watch(&client, &server);
    assert_int_equal(derive("provider=weir", &step, out, 32), 1);
    assert_true(client.known && !server.known);
    assert_memory_equal(client.bytes, out, 32);
    step.label = SPAN("s ap traffic");
    assert_int_equal(derive("provider=weir", &step, out, 32), 1);
    assert_true(server.known);
    assert_memory_equal(server.bytes, out, 32);
    server.known = false;
    tls_schedule_watch(NULL, NULL);
    assert_int_equal(derive("provider=weir", &step, out, 32), 1);
    assert_false(server.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_openssl_gives),
        cmocka_unit_test(refuses_what_no_handshake_asks_for),
        cmocka_unit_test(derives_the_keys_of_the_example),
        cmocka_unit_test(hands_over_the_first_traffic_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
