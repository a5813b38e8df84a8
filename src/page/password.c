/* SPDX-License-Identifier: MIT */
#include "page/password.h"

#include "base/base64.h"
#include "base/duration.h"
#include "base/hash.h"

#include <crypt.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static_assert((int)PAGE_PASSWORD_HASH_MAX == (int)CRYPT_OUTPUT_SIZE, "a hash fits");

int page_password_init(struct page_password *password, const char *hash)
{
    *password = (struct page_password){ .hash = hash };
    ssize_t got;
    do
        got = getrandom(password->seed, sizeof(password->seed), 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(password->seed) ? 0 : -errno;
}

/* ---- the field ---- */

/* Reads the password of a field, with a NUL behind it. False: the field holds none. */
static bool read_field(struct span field, char out[PAGE_PASSWORD_FIELD_MAX])
{
    static const struct span scheme = { "Basic ", 6 };
    if (!span_equal_nocase(span_first(field, scheme.len), scheme))
        return false;
    size_t len;
    if (!base64_decode(span_trim(span_skip(field, scheme.len)), (uint8_t *)out,
                       PAGE_PASSWORD_FIELD_MAX - 1, &len))
        return false;
    const char *colon = memchr(out, ':', len);
    if (!colon)
        return false;
    size_t rest = (size_t)(out + len - colon) - 1;
    memmove(out, colon + 1, rest);
    out[rest] = '\0';
    return rest > 0 && rest <= PAGE_PASSWORD_MAX && strlen(out) == rest;
}

/* ---- comparing ---- */

static bool is_known(const struct page_password_known *known, const uint64_t hash[2])
{
    return known->any && ((known->hash[0] ^ hash[0]) | (known->hash[1] ^ hash[1])) == 0;
}

/* Compares in constant time. The length of a hash is no secret, but the place where two hashes
 * differ is. */
static bool is_same_hash(const char *a, const char *b)
{
    size_t len = strlen(a);
    unsigned different = 0;
    if (len != strlen(b))
        return false;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return different == 0;
}

static bool matches_hash(const char *password, const char *hash)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    const char *got = data ? crypt_r(password, hash, data) : NULL;
    bool same = got && got[0] != '*' && is_same_hash(got, hash);
    if (data)
        explicit_bzero(data, sizeof(*data));
    free(data);
    return same;
}

static enum page_password_verdict judge(struct page_password *password, const char *text,
                                        uint64_t now_ns)
{
    struct page_password_known asked = { .any = true };
    for (unsigned i = 0; i < 2; i++)
        asked.hash[i] = hash_bytes(span_text(text), password->seed[i]);
    if (is_known(&password->right, asked.hash))
        return PAGE_PASSWORD_RIGHT;
    if (is_known(&password->wrong, asked.hash))
        return PAGE_PASSWORD_WRONG;
    if (password->second != now_ns / DURATION_SECOND)
        password->checks = 0;
    password->second = now_ns / DURATION_SECOND;
    if (password->checks == PAGE_PASSWORD_CHECKS)
        return PAGE_PASSWORD_LATER;
    password->checks++;
    bool right = matches_hash(text, password->hash);
    *(right ? &password->right : &password->wrong) = asked;
    return right ? PAGE_PASSWORD_RIGHT : PAGE_PASSWORD_WRONG;
}

enum page_password_verdict page_password_check(struct page_password *password, struct span field,
                                               uint64_t now_ns)
{
    if (!password->hash)
        return PAGE_PASSWORD_RIGHT;
    enum page_password_verdict verdict = PAGE_PASSWORD_WRONG;
    if (read_field(field, password->text))
        verdict = judge(password, password->text, now_ns);
    explicit_bzero(password->text, sizeof(password->text)); /* also when it was wrong */
    return verdict;
}

/* ---- hashes ---- */

bool page_password_can_use(const char *hash)
{
    int rc = crypt_checksalt(hash);
    return strlen(hash) < PAGE_PASSWORD_HASH_MAX && hash[0] == '$' &&
           (rc == CRYPT_SALT_OK || rc == CRYPT_SALT_METHOD_LEGACY);
}

int page_password_make(const char *password, char out[PAGE_PASSWORD_HASH_MAX])
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    struct crypt_data *data = calloc(1, sizeof(*data));
    if (!data)
        return -ENOMEM;
    const char *hash = NULL;
    if (crypt_gensalt_rn("$y$", 0, NULL, 0, setting, sizeof(setting)))
        hash = crypt_r(password, setting, data);
    int rc = hash && hash[0] != '*' ? 0 : -EINVAL;
    if (rc == 0)
        memcpy(out, hash, strlen(hash) + 1);
    explicit_bzero(data, sizeof(*data));
    free(data);
    return rc;
}
