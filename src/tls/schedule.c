/* SPDX-License-Identifier: MIT */
#include "tls/schedule.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>

enum { BLOCK_MAX = 128, LABEL_MAX = 64 };

struct digest {
    const char *name, *other_name; /* libssl uses both */
    EVP_MD *type;                  /* fetched once: each fetch takes OpenSSL's locks */
    size_t len, block;
};

static struct digest digests[] = {
    { "SHA2-256", "SHA256", NULL, 32, 64 },
    { "SHA2-384", "SHA384", NULL, 48, 128 },
};

enum { DIGESTS = sizeof(digests) / sizeof(digests[0]) };

static _Thread_local struct tls_secret *client_secret, *server_secret;

void tls_schedule_watch(struct tls_secret *client, struct tls_secret *server)
{
    client_secret = client;
    server_secret = server;
}

/* ---- HKDF (RFC 5869) ---- */

/* Digests a block of `key` xor `pad`, and `input`. */
static bool hash(EVP_MD_CTX *context, const struct digest *digest, struct span key,
                 unsigned char pad, struct span input, unsigned char *to)
{
    unsigned char block[BLOCK_MAX];
    memset(block, pad, digest->block);
    for (size_t i = 0; i < key.len; i++)
        block[i] ^= (unsigned char)key.at[i];
    bool done = EVP_DigestInit_ex2(context, digest->type, NULL) == 1 &&
                EVP_DigestUpdate(context, block, digest->block) == 1 &&
                EVP_DigestUpdate(context, input.at, input.len) == 1 &&
                EVP_DigestFinal_ex(context, to, NULL) == 1;
    OPENSSL_cleanse(block, digest->block);
    return done;
}

/* HMAC (RFC 2104), with a key that is no longer than a block. */
static bool authenticate(EVP_MD_CTX *context, const struct digest *digest, struct span key,
                         struct span input, unsigned char *to)
{
    unsigned char inner[EVP_MAX_MD_SIZE];
    bool done = key.len <= digest->block && hash(context, digest, key, 0x36, input, inner) &&
                hash(context, digest, key, 0x5c, span_of((const char *)inner, digest->len), to);
    OPENSSL_cleanse(inner, digest->len);
    return done;
}

static void append(unsigned char *to, size_t *len, struct span bytes)
{
    if (bytes.len > 0)
        memcpy(to + *len, bytes.at, bytes.len);
    *len += bytes.len;
}

/* HKDF-Expand-Label (RFC 8446 section 7.1). Its output is no longer than the digest, so it is one
 * block. */
static bool expand(EVP_MD_CTX *context, const struct digest *digest, struct span secret,
                   struct span prefix, struct span label, struct span data, unsigned char *to,
                   size_t size)
{
    unsigned char input[4 + LABEL_MAX + EVP_MAX_MD_SIZE + 1], block[EVP_MAX_MD_SIZE];
    size_t len = 3;
    if (size > digest->len || prefix.len + label.len > LABEL_MAX || data.len > EVP_MAX_MD_SIZE)
        return false;
    input[0] = 0;
    input[1] = (unsigned char)size;
    input[2] = (unsigned char)(prefix.len + label.len);
    append(input, &len, prefix);
    append(input, &len, label);
    input[len++] = (unsigned char)data.len;
    append(input, &len, data);
    input[len++] = 1; /* the number of the block */
    if (!authenticate(context, digest, secret, span_of((const char *)input, len), block))
        return false;
    memcpy(to, block, size);
    OPENSSL_cleanse(block, digest->len);
    return true;
}

/* ---- the provider ---- */

/* One request of OpenSSL: "Derive-Secret" or HKDF-Extract. */
struct request {
    int mode;
    const struct digest *digest;
    struct span key, salt, prefix, label, data;
};

/* EVP_MD_is_a takes 1,400 instructions. */
static const struct digest *find_digest(const char *name)
{
    for (size_t i = 0; i < DIGESTS; i++)
        if (strcmp(name, digests[i].name) == 0 || strcmp(name, digests[i].other_name) == 0)
            return &digests[i];
    return NULL;
}

static bool read_request(const OSSL_PARAM *param, struct request *ret_request)
{
    *ret_request = (struct request){ .mode = -1 };
    for (; param && param->key; param++) {
        struct span value = span_of(param->data, param->data_size);
        struct request *r = ret_request;
        if (strcmp(param->key, OSSL_KDF_PARAM_MODE) == 0)
            (void)OSSL_PARAM_get_int(param, &r->mode);
        else if (strcmp(param->key, OSSL_KDF_PARAM_DIGEST) == 0)
            r->digest = find_digest(param->data);
        else if (strcmp(param->key, OSSL_KDF_PARAM_KEY) == 0)
            r->key = value;
        else if (strcmp(param->key, OSSL_KDF_PARAM_SALT) == 0)
            r->salt = value;
        else if (strcmp(param->key, OSSL_KDF_PARAM_PREFIX) == 0)
            r->prefix = value;
        else if (strcmp(param->key, OSSL_KDF_PARAM_LABEL) == 0)
            r->label = value;
        else if (strcmp(param->key, OSSL_KDF_PARAM_DATA) == 0)
            r->data = value;
    }
    return ret_request->digest != NULL;
}

/* From the secret of the step before (salt) and new input (key) to the next secret. Between both
 * is Derive-Secret(salt, "derived", ""). A missing input is a block of zeros. */
static bool extract(EVP_MD_CTX *context, const struct request *r, unsigned char *to)
{
    static const char zeros[EVP_MAX_MD_SIZE];
    unsigned char empty[EVP_MAX_MD_SIZE], salt[EVP_MAX_MD_SIZE];
    const size_t len = r->digest->len;
    struct span key = r->key.at ? r->key : span_of(zeros, len);
    if (!r->salt.at)
        return authenticate(context, r->digest, span_of(zeros, 0), key, to);
    bool done = EVP_DigestInit_ex2(context, r->digest->type, NULL) == 1 &&
                EVP_DigestFinal_ex(context, empty, NULL) == 1 &&
                expand(context, r->digest, r->salt, r->prefix, r->label,
                       span_of((const char *)empty, len), salt, len) &&
                authenticate(context, r->digest, span_of((const char *)salt, len), key, to);
    OPENSSL_cleanse(salt, len);
    return done;
}

static void note_secret(struct span label, const unsigned char *secret, size_t len)
{
    struct tls_secret *to = NULL;
    if (span_equal(label, SPAN("c ap traffic")))
        to = client_secret;
    else if (span_equal(label, SPAN("s ap traffic")))
        to = server_secret;
    if (!to || len > TLS_SECRET_BYTES)
        return;
    memcpy(to->bytes, secret, len);
    to->known = true;
}

static int derive(void *context, unsigned char *to, size_t size, const OSSL_PARAM params[])
{
    struct request r;
    if (!read_request(params, &r))
        return 0;
    if (r.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY)
        return size == r.digest->len && extract(context, &r, to);
    if (r.mode != EVP_KDF_HKDF_MODE_EXPAND_ONLY ||
        !expand(context, r.digest, r.key, r.prefix, r.label, r.data, to, size))
        return 0;
    note_secret(r.label, to, size);
    return 1;
}

static void *make_context(void *nothing)
{
    (void)nothing;
    return EVP_MD_CTX_new();
}

static void free_context(void *context)
{
    EVP_MD_CTX_free(context);
}

/* The type of OpenSSL's tables of functions. */
#define ENTRY(number, function) \
    { \
        number, (void (*)(void))(function) \
    }

static const OSSL_DISPATCH kdf_functions[] = {
    ENTRY(OSSL_FUNC_KDF_NEWCTX, make_context),
    ENTRY(OSSL_FUNC_KDF_FREECTX, free_context),
    ENTRY(OSSL_FUNC_KDF_DERIVE, derive),
    { 0, NULL },
};

static const OSSL_ALGORITHM algorithms[] = {
    { "TLS13-KDF", "provider=weir", kdf_functions, "HKDF of TLS 1.3" },
    { NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM *query(void *nothing, int operation, int *ret_changes)
{
    (void)nothing;
    *ret_changes = 0;
    return operation == OSSL_OP_KDF ? algorithms : NULL;
}

static const OSSL_DISPATCH provider_functions[] = {
    ENTRY(OSSL_FUNC_PROVIDER_QUERY_OPERATION, query),
    { 0, NULL },
};

static int begin_provider(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *core,
                          const OSSL_DISPATCH **ret_functions, void **ret_provider)
{
    (void)core;
    *ret_functions = provider_functions;
    *ret_provider = (void *)(uintptr_t)handle;
    return 1;
}

static OSSL_PROVIDER *provider; /* stays loaded; NULL: it could not be loaded */

static void load_provider(void)
{
    for (size_t i = 0; i < DIGESTS; i++)
        digests[i].type = EVP_MD_fetch(NULL, digests[i].name, NULL);
    if (digests[0].type && digests[1].type &&
        OSSL_PROVIDER_add_builtin(NULL, "weir", begin_provider) == 1)
        provider = OSSL_PROVIDER_try_load(NULL, "weir", 1); /* 1: the default providers stay */
    ERR_clear_error();
}

const char *tls_schedule_properties(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&once, load_provider) == 0);
    return provider ? "?provider=weir" : NULL;
}

bool tls_schedule_expand(struct span secret, struct span label, unsigned char *to, size_t len)
{
    const struct digest *digest = &digests[secret.len > 32];
    EVP_MD_CTX *context = digest->type ? EVP_MD_CTX_new() : NULL;
    bool done = context &&
                expand(context, digest, secret, SPAN("tls13 "), label, SPAN(""), to, len);
    EVP_MD_CTX_free(context);
    return done;
}
