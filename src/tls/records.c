/* SPDX-License-Identifier: MIT
 *
 * After the handshake a client may send data, alerts and KeyUpdate. Any other message is an error:
 * weir asks for no certificate of the client, and tickets come from servers.
 *
 * A record is decrypted from the place where it was received into the place where it is read. It
 * is encrypted from the places where the answer is into the chunk that is sent.
 */
#include "tls/records.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>

enum record_type { ALERT = 21, HANDSHAKE = 22, DATA = 23 };

enum {
    HEAD = TLS_RECORD_HEAD_BYTES,
    TAG = 16,
    LEN_MAX = TLS_RECORD_BYTES + 256, /* RFC 8446 section 5.2 */
    BLOCK = 16,                       /* of the ciphers */
    COPY_MAX = 2048,                  /* up to here, a copy costs less than a second call */
    KEY_UPDATE = 24,
    IDLE_MAX = 32, /* records without data, between two with data */
};

/* More full records weaken the keys of AES-GCM (RFC 8446 section 5.5). */
#define RECORDS_MAX (UINT64_C(1) << 24)

struct tls_suite {
    const char *name;
    EVP_CIPHER *cipher; /* NULL: OpenSSL does not have it */
    uint16_t number;
    uint8_t key_len, secret_len;
};

static struct tls_suite suites[] = {
    { "AES-128-GCM", NULL, 0x1301, 16, 32 },
    { "AES-256-GCM", NULL, 0x1302, 32, 48 },
    { "ChaCha20-Poly1305", NULL, 0x1303, 32, 32 },
};

enum { SUITES = sizeof(suites) / sizeof(suites[0]) };

/* ---- keys ---- */

static void fetch_ciphers(void)
{
    for (unsigned i = 0; i < SUITES; i++)
        suites[i].cipher = EVP_CIPHER_fetch(NULL, suites[i].name, NULL);
    ERR_clear_error();
}

void tls_records_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&once, fetch_ciphers) == 0);
}

static const struct tls_suite *find_suite(unsigned number)
{
    tls_records_prepare();
    for (unsigned i = 0; i < SUITES; i++)
        if (suites[i].cipher && suites[i].number == number)
            return &suites[i];
    return NULL;
}

static struct span secret_of(const struct tls_suite *suite, const struct tls_keys *keys)
{
    return span_of((const char *)keys->secret.bytes, suite->secret_len);
}

static bool set_keys(const struct tls_suite *suite, struct tls_keys *keys, int seals)
{
    unsigned char key[32];
    struct span secret = secret_of(suite, keys);
    bool set = tls_schedule_expand(secret, SPAN("key"), key, suite->key_len) &&
               tls_schedule_expand(secret, SPAN("iv"), keys->iv, sizeof(keys->iv)) &&
               EVP_CipherInit_ex2(keys->cipher, suite->cipher, key, NULL, seals, NULL) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    return set;
}

static bool update_keys(const struct tls_suite *suite, struct tls_keys *keys, int seals)
{
    unsigned char next[TLS_SECRET_BYTES];
    bool updated =
        tls_schedule_expand(secret_of(suite, keys), SPAN("traffic upd"), next, suite->secret_len);
    if (updated) {
        memcpy(keys->secret.bytes, next, suite->secret_len);
        keys->count = 0;
        updated = set_keys(suite, keys, seals);
    }
    OPENSSL_cleanse(next, sizeof(next));
    return updated;
}

/* Each record has its own nonce (RFC 8446 section 5.3). */
static bool set_nonce(struct tls_keys *keys)
{
    unsigned char nonce[sizeof(keys->iv)];
    uint64_t tail;
    memcpy(nonce, keys->iv, sizeof(nonce));
    memcpy(&tail, nonce + 4, sizeof(tail));
    tail ^= htobe64(keys->count++);
    memcpy(nonce + 4, &tail, sizeof(tail));
    return EVP_CipherInit_ex2(keys->cipher, NULL, NULL, nonce, -1, NULL) == 1;
}

/* ---- beginning and end ---- */

bool tls_records_begin(struct tls_records *r, unsigned suite)
{
    r->suite = find_suite(suite);
    r->in.cipher = r->suite ? EVP_CIPHER_CTX_new() : NULL;
    r->out.cipher = r->in.cipher ? EVP_CIPHER_CTX_new() : NULL;
    bool begun = r->out.cipher && set_keys(r->suite, &r->in, 0) && set_keys(r->suite, &r->out, 1);
    if (!begun) {
        EVP_CIPHER_CTX_free(r->in.cipher);
        EVP_CIPHER_CTX_free(r->out.cipher);
        r->in.cipher = r->out.cipher = NULL;
        ERR_clear_error();
    }
    return begun;
}

void tls_records_free(struct tls_records *r)
{
    if (!r)
        return;
    EVP_CIPHER_CTX_free(r->in.cipher);
    EVP_CIPHER_CTX_free(r->out.cipher);
    free(r->part);
    free(r->held);
    OPENSSL_cleanse(r, sizeof(*r));
    free(r);
}

/* ---- writing ---- */

static bool encrypt(EVP_CIPHER_CTX *cipher, unsigned char *to, const void *from, size_t len)
{
    int done = 0;
    return len == 0 || EVP_EncryptUpdate(cipher, to, &done, from, (int)len) == 1;
}

/* Encrypts the pieces and the type behind them. A short piece is copied to its place, and is
 * encrypted there with its neighbours. A long one is encrypted from where it is, in whole blocks:
 * its first bytes complete the block of the bytes before it. */
static bool encrypt_pieces(EVP_CIPHER_CTX *cipher, const struct span *pieces, unsigned count,
                           enum record_type type, unsigned char *body)
{
    unsigned char *from = body, *to = body; /* copied, and not yet encrypted: [from, to) */
    for (unsigned i = 0; i < count; i++) {
        struct span rest = pieces[i];
        if (rest.len > COPY_MAX) {
            const size_t gap = (size_t)(body - to) % BLOCK;
            memcpy(to, rest.at, gap);
            to += gap;
            rest = span_skip(rest, gap);
            const size_t whole = rest.len - rest.len % BLOCK;
            if (!encrypt(cipher, from, from, (size_t)(to - from)) ||
                !encrypt(cipher, to, rest.at, whole))
                return false;
            from = to += whole;
            rest = span_skip(rest, whole);
        }
        if (rest.len > 0)
            memcpy(to, rest.at, rest.len);
        to += rest.len;
    }
    *to++ = (unsigned char)type;
    return encrypt(cipher, from, from, (size_t)(to - from));
}

static size_t length_of(const struct span *pieces, unsigned count)
{
    size_t len = 0;
    for (unsigned i = 0; i < count; i++)
        len += pieces[i].len;
    return len;
}

/* Seals a record of `len` bytes in `pieces`, at `to`. */
static bool seal(struct tls_keys *keys, enum record_type type, const struct span *pieces,
                 unsigned count, size_t len, unsigned char *to)
{
    const size_t sealed = len + 1 + TAG;
    unsigned char *end = to + HEAD + len + 1;
    int last = 0;
    memcpy(to, (unsigned char[]){ DATA, 3, 3, (unsigned char)(sealed >> 8), (unsigned char)sealed },
           HEAD);
    return set_nonce(keys) && EVP_EncryptUpdate(keys->cipher, NULL, &last, to, HEAD) == 1 &&
           encrypt_pieces(keys->cipher, pieces, count, type, to + HEAD) &&
           EVP_EncryptFinal_ex(keys->cipher, end, &last) == 1 &&
           EVP_CIPHER_CTX_ctrl(keys->cipher, EVP_CTRL_AEAD_GET_TAG, TAG, end) == 1;
}

/* Adds a record to the wire. */
static enum tls_result add_record(struct tls_connection *c, enum record_type type,
                                  const struct span *pieces, unsigned count)
{
    const size_t len = length_of(pieces, count), size = HEAD + len + 1 + TAG;
    char *to = tls_wire_reserve(&c->wire, c->chunks, size);
    if (!to) {
        c->memory_failed = true;
        return TLS_FAILED;
    }
    bool sealed = seal(&c->records->out, type, pieces, count, len, (unsigned char *)to);
    tls_wire_commit(&c->wire, c->chunks, sealed ? size : 0);
    if (sealed)
        return TLS_DONE;
    ERR_clear_error();
    return TLS_FAILED;
}

static enum tls_result send_key_update(struct tls_connection *c)
{
    struct tls_records *r = c->records;
    const struct span message = SPAN("\x18\0\0\1\0");
    enum tls_result result = add_record(c, HANDSHAKE, &message, 1);
    r->update_requested = false;
    if (result == TLS_DONE && !update_keys(r->suite, &r->out, 1)) {
        ERR_clear_error();
        result = TLS_FAILED;
    }
    return result;
}

enum tls_result tls_records_write(struct tls_connection *c, const struct span *pieces,
                                  unsigned count)
{
    const struct tls_records *r = c->records;
    if (__builtin_expect(r->out.count >= RECORDS_MAX || r->update_requested, 0) &&
        send_key_update(c) != TLS_DONE)
        return TLS_FAILED;
    return add_record(c, DATA, pieces, count);
}

static void send_alert(struct tls_connection *c, unsigned level, unsigned description)
{
    const char alert[] = { (char)level, (char)description };
    const struct span message = span_of(alert, sizeof(alert));
    (void)add_record(c, ALERT, &message, 1);
}

void tls_records_end(struct tls_connection *c)
{
    if (!c->records->failed)
        send_alert(c, SSL3_AL_WARNING, SSL_AD_CLOSE_NOTIFY);
}

/* ---- reading ---- */

static enum tls_result fail_with(struct tls_connection *c, unsigned description)
{
    send_alert(c, SSL3_AL_FATAL, description);
    c->records->failed = true;
    return TLS_FAILED;
}

static size_t body_len(const void *head)
{
    const unsigned char *at = head;
    return (size_t)at[3] << 8 | at[4];
}

/* Adds to the record that has arrived in part. TLS_DONE: it is complete, in `part`. */
static enum tls_result collect_record(struct tls_connection *c)
{
    struct tls_records *r = c->records;
    for (; r->part_len < HEAD && c->in.len > 0; c->in = span_skip(c->in, 1))
        r->head[r->part_len++] = (unsigned char)c->in.at[0];
    if (r->part_len < HEAD)
        return TLS_MORE;
    size_t size = HEAD + body_len(r->head);
    if (size > HEAD + LEN_MAX)
        return fail_with(c, SSL_AD_RECORD_OVERFLOW);
    if (!r->part) {
        r->part = malloc(size);
        if (!r->part) {
            c->memory_failed = true;
            return TLS_FAILED;
        }
        memcpy(r->part, r->head, HEAD);
    }
    struct span more = span_first(c->in, size - r->part_len);
    if (more.len > 0)
        memcpy(r->part + r->part_len, more.at, more.len);
    r->part_len += more.len;
    c->in = span_skip(c->in, more.len);
    return r->part_len == size ? TLS_DONE : TLS_MORE;
}

/* The next whole record, where it was received if it came in one piece. */
static enum tls_result next_record(struct tls_connection *c, struct span *ret_record)
{
    struct tls_records *r = c->records;
    if (__builtin_expect(r->part_len == 0 && c->in.len >= HEAD, 1)) {
        size_t size = HEAD + body_len(c->in.at);
        if (__builtin_expect(c->in.len >= size && size <= HEAD + LEN_MAX, 1)) {
            *ret_record = span_first(c->in, size);
            c->in = span_skip(c->in, size);
            return TLS_DONE;
        }
    }
    enum tls_result result = collect_record(c);
    if (result == TLS_DONE)
        *ret_record = span_of(r->part, r->part_len);
    return result;
}

/* Decrypts the body of `record` to `to`, which has space for it. */
static bool open_record(struct tls_keys *keys, struct span record, char *to)
{
    struct span body = span_first(span_skip(record, HEAD), record.len - HEAD - TAG);
    int len = 0, last = 0;
    void *tag = (void *)(uintptr_t)(body.at + body.len); /* OpenSSL only reads it */
    return set_nonce(keys) &&
           EVP_CIPHER_CTX_ctrl(keys->cipher, EVP_CTRL_AEAD_SET_TAG, TAG, tag) == 1 &&
           EVP_DecryptUpdate(keys->cipher, NULL, &len, (const unsigned char *)record.at, HEAD) ==
               1 &&
           EVP_DecryptUpdate(keys->cipher, (unsigned char *)to, &len,
                             (const unsigned char *)body.at, (int)body.len) == 1 &&
           EVP_DecryptFinal_ex(keys->cipher, (unsigned char *)to + len, &last) == 1;
}

static enum tls_result take_alert(struct tls_connection *c, struct span alert)
{
    if (alert.len != 2)
        return fail_with(c, SSL_AD_DECODE_ERROR);
    if (alert.at[1] == SSL_AD_USER_CANCELLED) /* close_notify follows */
        return TLS_DONE;
    c->records->ended = alert.at[1] == SSL_AD_CLOSE_NOTIFY;
    c->records->failed = !c->records->ended;
    return c->records->ended ? TLS_ENDED : TLS_FAILED;
}

/* A KeyUpdate ends its record, because the next one has other keys (RFC 8446 section 5.1). The own
 * one that it may request is sent before the next data: one for all requests until then (section
 * 4.6.3). If each had its own, a client that reads nothing could fill the memory. */
static enum tls_result take_handshake(struct tls_connection *c, struct span bytes)
{
    struct tls_records *r = c->records;
    if (bytes.len == 0)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    for (; bytes.len > 0 && r->message_len < sizeof(r->message); bytes = span_skip(bytes, 1))
        r->message[r->message_len++] = (unsigned char)bytes.at[0];
    if (r->message[0] != KEY_UPDATE || bytes.len > 0)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    if (r->message_len < sizeof(r->message))
        return TLS_DONE;
    r->message_len = 0;
    if (memcmp(r->message + 1, "\0\0\1", 3) != 0)
        return fail_with(c, SSL_AD_DECODE_ERROR);
    if (r->message[4] > 1)
        return fail_with(c, SSL_AD_ILLEGAL_PARAMETER);
    if (!update_keys(r->suite, &r->in, 0)) {
        ERR_clear_error();
        return fail_with(c, SSL_AD_INTERNAL_ERROR);
    }
    r->update_requested = r->update_requested || r->message[4] == 1;
    return TLS_DONE;
}

/* `plain` is a decrypted record: content, type, and zeros that hide its length. Returns the length
 * of the data in it. */
static enum tls_result take_content(struct tls_connection *c, struct span plain, size_t *ret_data)
{
    *ret_data = 0;
    if (plain.len > TLS_RECORD_BYTES + 1)
        return fail_with(c, SSL_AD_RECORD_OVERFLOW);
    while (plain.len > 0 && plain.at[plain.len - 1] == 0)
        plain.len--;
    if (plain.len == 0)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    char type = plain.at[--plain.len];
    if (type != HANDSHAKE && c->records->message_len > 0)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    if (type == DATA && plain.len > 0) {
        *ret_data = plain.len;
        c->messages = 0;
        return TLS_DONE;
    }
    if (++c->messages > IDLE_MAX)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    switch (type) {
    case DATA:
        return TLS_DONE;
    case ALERT:
        return take_alert(c, plain);
    case HANDSHAKE:
        return take_handshake(c, plain);
    default:
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    }
}

/* Decrypts a record to `to`, or into memory of its own if `size` bytes are too few. */
static enum tls_result take_record(struct tls_connection *c, struct span record, char *to,
                                   size_t size, size_t *ret_len)
{
    struct tls_records *r = c->records;
    *ret_len = 0;
    if (record.at[0] != DATA)
        return fail_with(c, SSL_AD_UNEXPECTED_MESSAGE);
    if (record.len < HEAD + TAG + 1)
        return fail_with(c, SSL_AD_BAD_RECORD_MAC);
    size_t len = record.len - HEAD - TAG;
    char *place = to;
    if (__builtin_expect(len > size, 0)) {
        place = r->held = malloc(len);
        r->held_at = r->held_len = 0;
        if (!place) {
            c->memory_failed = true;
            return TLS_FAILED;
        }
    }
    if (!open_record(&r->in, record, place)) {
        ERR_clear_error();
        return fail_with(c, SSL_AD_BAD_RECORD_MAC);
    }
    return take_content(c, span_of(place, len), r->held ? &r->held_len : ret_len);
}

static size_t take_held(struct tls_records *r, char *to, size_t size)
{
    struct span part = span_first(span_of(r->held + r->held_at, r->held_len - r->held_at), size);
    if (part.len > 0)
        memcpy(to, part.at, part.len);
    r->held_at += part.len;
    if (r->held_at == r->held_len) {
        free(r->held);
        r->held = NULL;
    }
    return part.len;
}

enum tls_result tls_records_read(struct tls_connection *c, char *to, size_t size, size_t *ret_len)
{
    struct tls_records *r = c->records;
    *ret_len = 0;
    while (*ret_len < size) {
        struct span record;
        size_t len = 0;
        if (r->held) {
            *ret_len += take_held(r, to + *ret_len, size - *ret_len);
            continue;
        }
        if (r->ended || r->failed)
            return r->failed ? TLS_FAILED : TLS_ENDED;
        enum tls_result result = next_record(c, &record);
        if (result == TLS_DONE)
            result = take_record(c, record, to + *ret_len, size - *ret_len, &len);
        if (__builtin_expect(r->part_len > 0 && result != TLS_MORE, 0)) {
            free(r->part);
            r->part = NULL;
            r->part_len = 0;
        }
        if (__builtin_expect(result == TLS_FAILED || result == TLS_ENDED, 0)) {
            r->failed = r->failed || result == TLS_FAILED;
            c->in = SPAN("");
            free(r->held); /* of a record that was no data */
            r->held = NULL;
        }
        if (result != TLS_DONE)
            return result;
        *ret_len += len;
    }
    return TLS_DONE;
}
