/* SPDX-License-Identifier: MIT
 *
 * One direction of a TLS 1.3 connection (RFC 8446 section 5.2), for targets that seal and open
 * records which no library makes: any content type, any length, any padding.
 */
#pragma once

#include "base/check.h"
#include "tls/schedule.h"
#include "tls/wire.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

enum { SEALER_HEAD = 5, SEALER_TAG = 16 };

struct sealer {
    EVP_CIPHER_CTX *cipher;
    unsigned char secret[TLS_SECRET_BYTES];
    unsigned char iv[12];
    uint64_t count;
    unsigned suite; /* RFC 8446 section B.4 */
};

static inline struct span sealer_secret(const struct sealer *s)
{
    return span_of((const char *)s->secret, s->suite == 0x1302 ? 48 : 32);
}

static inline const EVP_CIPHER *sealer_cipher(const struct sealer *s)
{
    return s->suite == 0x1301   ? EVP_aes_128_gcm()
           : s->suite == 0x1302 ? EVP_aes_256_gcm()
                                : EVP_chacha20_poly1305();
}

static inline void sealer_set_keys(struct sealer *s)
{
    unsigned char key[32];
    const size_t key_len = s->suite == 0x1301 ? 16 : 32;
    CHECK(tls_schedule_expand(sealer_secret(s), SPAN("key"), key, key_len));
    CHECK(tls_schedule_expand(sealer_secret(s), SPAN("iv"), s->iv, sizeof(s->iv)));
    CHECK(EVP_CipherInit_ex(s->cipher, sealer_cipher(s), NULL, key, NULL, 1) == 1);
    s->count = 0;
}

/* `secret` is the first traffic secret of the direction. */
static inline void sealer_begin(struct sealer *s, unsigned suite, struct span secret)
{
    CHECK(tls_schedule_properties()); /* it fetches the digests */
    *s = (struct sealer){ .cipher = EVP_CIPHER_CTX_new(), .suite = suite };
    CHECK(s->cipher && secret.len == sealer_secret(s).len);
    memcpy(s->secret, secret.at, secret.len);
    sealer_set_keys(s);
}

static inline void sealer_end(struct sealer *s)
{
    EVP_CIPHER_CTX_free(s->cipher);
}

/* Changes the keys, as after a KeyUpdate (RFC 8446 section 7.2). */
static inline void sealer_update(struct sealer *s)
{
    unsigned char next[TLS_SECRET_BYTES];
    const struct span secret = sealer_secret(s);
    CHECK(tls_schedule_expand(secret, SPAN("traffic upd"), next, secret.len));
    memcpy(s->secret, next, secret.len);
    sealer_set_keys(s);
}

static inline void sealer_start_record(struct sealer *s, int seals)
{
    unsigned char nonce[12];
    uint64_t tail;
    memcpy(nonce, s->iv, sizeof(nonce));
    memcpy(&tail, nonce + 4, sizeof(tail));
    tail ^= htobe64(s->count++);
    memcpy(nonce + 4, &tail, sizeof(tail));
    CHECK(EVP_CipherInit_ex(s->cipher, NULL, NULL, NULL, nonce, seals) == 1);
}

/* Appends a record to `to`, which has space for SEALER_HEAD + SEALER_TAG more bytes than `inner`:
 * the content, the type and the padding. Returns its length. */
static inline size_t sealer_seal(struct sealer *s, struct span inner, char *to)
{
    unsigned char *record = (unsigned char *)to;
    const size_t size = inner.len + SEALER_TAG;
    int len;
    sealer_start_record(s, 1);
    memcpy(to, (const char[]){ 23, 3, 3, (char)(size >> 8), (char)size }, SEALER_HEAD);
    CHECK(EVP_CipherUpdate(s->cipher, NULL, &len, record, SEALER_HEAD) == 1);
    if (inner.len > 0)
        CHECK(EVP_CipherUpdate(s->cipher, record + SEALER_HEAD, &len,
                               (const unsigned char *)inner.at, (int)inner.len) == 1);
    CHECK(EVP_CipherFinal_ex(s->cipher, record + SEALER_HEAD + inner.len, &len) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_GET_TAG, SEALER_TAG,
                              record + SEALER_HEAD + inner.len) == 1);
    return SEALER_HEAD + size;
}

/* Opens a whole record to `to`, which has as much space. Returns its inner plaintext. */
static inline struct span sealer_open(struct sealer *s, struct span record, char *to)
{
    CHECK(record.len > SEALER_HEAD + SEALER_TAG);
    const unsigned char *body = (const unsigned char *)record.at + SEALER_HEAD;
    const size_t size = record.len - SEALER_HEAD - SEALER_TAG;
    unsigned char tag[SEALER_TAG];
    int len, last;
    memcpy(tag, body + size, sizeof(tag));
    sealer_start_record(s, 0);
    CHECK(EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_AEAD_SET_TAG, SEALER_TAG, tag) == 1);
    CHECK(EVP_CipherUpdate(s->cipher, NULL, &len, (const unsigned char *)record.at, SEALER_HEAD) ==
          1);
    CHECK(EVP_CipherUpdate(s->cipher, (unsigned char *)to, &len, body, (int)size) == 1);
    CHECK(EVP_CipherFinal_ex(s->cipher, (unsigned char *)to + len, &last) == 1);
    return span_of(to, size);
}
