/* SPDX-License-Identifier: MIT
 *
 * The records of a TLS 1.3 connection after its handshake (RFC 8446 section 5): encryption,
 * decryption, alerts and key updates. OpenSSL makes the handshake, and has the ciphers.
 *
 * OpenSSL's own layer of records copies each byte twice more, allocates its buffers for each
 * request, and keeps 12 KiB for an idle connection
 * (docs/decisions/030-records-of-our-own.md).
 */
#pragma once

#include "tls/connection.h"
#include "tls/schedule.h"

enum { TLS_RECORD_HEAD_BYTES = 5 };

struct tls_suite;

/* The keys of one direction. */
struct tls_keys {
    EVP_CIPHER_CTX *cipher;
    uint64_t count; /* of the records under these keys */
    unsigned char iv[12];
    struct tls_secret secret;
};

struct tls_records {
    const struct tls_suite *suite;
    struct tls_keys in, out;
    char *part;      /* a record that has arrived in part; NULL while its head is not complete */
    size_t part_len; /* of it, with its head; 0: none */
    char *held;      /* decrypted bytes that the caller had no space for; NULL: none */
    size_t held_at, held_len;
    unsigned char head[TLS_RECORD_HEAD_BYTES]; /* of that record */
    unsigned char message[5];                  /* a KeyUpdate that has arrived in part */
    unsigned char message_len;
    bool failed, ended;
    bool update_requested; /* by the peer: a KeyUpdate goes before the next data */
};

/* Fetches the ciphers of OpenSSL, which takes its locks. To be called before threads and forks. */
void tls_records_prepare(void);

/* Begins with the secrets and counts of records in `r`, which the caller has filled in, and with
 * the cipher suite of this number (RFC 8446 section B.4). False: it is not known here, or
 * there is no memory. */
MUST_USE bool tls_records_begin(struct tls_records *r, unsigned suite);

/* Frees `r` and all that it has, and clears the secrets. NULL is allowed. */
void tls_records_free(struct tls_records *r);

/* The functions of tls/connection.h, for a connection with `records`. */
enum tls_result tls_records_read(struct tls_connection *c, char *to, size_t size, size_t *ret_len);
enum tls_result tls_records_write(struct tls_connection *c, const struct span *pieces,
                                  unsigned count);
void tls_records_end(struct tls_connection *c);
