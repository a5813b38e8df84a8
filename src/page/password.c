/* SPDX-License-Identifier: MIT */
#include "page/password.h"

#include "base/hash.h"

#include <crypt.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static_assert((int)PAGE_PASSWORD_HASH_MAX == (int)CRYPT_OUTPUT_SIZE, "a hash fits");
#define SECOND_NS UINT64_C(1000000000)

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

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decodes base64 (RFC 4648 section 4), with or without its padding. Returns the length; -1: it is
 * none, or too long. */
static int decode(struct span text, char *out, size_t size)
{
    size_t len = 0;
    unsigned bits = 0, count = 0;
    while (text.len > 0 && text.at[text.len - 1] == '=')
        text.len--;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_of(text.at[i]);
        if (digit < 0)
            return -1;
        bits = (bits << 6 | (unsigned)digit) & 0xffff;
        count += 6;
        if (count < 8)
            continue;
        count -= 8;
        if (len == size)
            return -1;
        out[len++] = (char)(bits >> count & 0xff);
    }
    return (int)len;
}

/* The password of a field, with a NUL behind it; false: it holds none. */
static bool read_field(struct span field, char out[PAGE_PASSWORD_FIELD_MAX])
{
    static const struct span scheme = { "Basic ", 6 };
    if (!span_equal_nocase(span_first(field, scheme.len), scheme))
        return false;
    int len = decode(span_trim(span_skip(field, scheme.len)), out, PAGE_PASSWORD_FIELD_MAX - 1);
    const char *colon = len > 0 ? memchr(out, ':', (size_t)len) : NULL;
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

/* How long hashes are is no secret; where they differ is. */
static bool is_same(const char *a, const char *b)
{
    size_t len = strlen(a);
    unsigned different = 0;
    if (len != strlen(b))
        return false;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return different == 0;
}

static bool compare(const char *password, const char *hash)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    const char *got = data ? crypt_r(password, hash, data) : NULL;
    bool same = got && got[0] != '*' && is_same(got, hash);
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
    if (password->second != now_ns / SECOND_NS)
        password->checks = 0;
    password->second = now_ns / SECOND_NS;
    if (password->checks == PAGE_PASSWORD_CHECKS)
        return PAGE_PASSWORD_LATER;
    password->checks++;
    bool right = compare(text, password->hash);
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
    explicit_bzero(password->text, sizeof(password->text)); /* whatever it was */
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
