/* SPDX-License-Identifier: MIT
 *
 * A certificate chain and its private key, read from PEM files and checked. It does not judge
 * whether a client trusts the issuer.
 *
 * The bytes of the files are in memory that core dumps leave out, and are cleared after reading.
 * The key in OpenSSL's own form is in the heap.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <openssl/x509.h>
#include <stdint.h>

/* The files of a certificate chain, leaf first, and of its private key. Both may be one file. */
struct tls_pair {
    const char *certificate, *key; /* paths */
};

enum {
    TLS_WHY_MAX = 512,
    TLS_FINGERPRINT_MAX = 3 * 32, /* "AB:CD:...", with the NUL */
    TLS_FILE_MAX = 1024 * 1024,   /* bytes */
    TLS_CHAIN_MAX = 20            /* certificates behind the leaf */
};

struct tls_identity {
    X509 *leaf;
    STACK_OF(X509) * chain; /* the certificates behind the leaf, as in the file */
    EVP_PKEY *key;
    char *file;                            /* path of the certificate, for messages */
    char fingerprint[TLS_FINGERPRINT_MAX]; /* SHA-256 of the leaf */
    int64_t begins_s, ends_s;              /* of the leaf, in seconds since 1970 */
    bool self_signed;                      /* by its names; the signature is not verified */
    bool has_intermediate;
    char **names; /* dNSName in lower case and iPAddress as text; NULL at the end */
};

/* Reads the files of the pair. NULL with a one-line reason in `why`, which names the file and the
 * cure. Any thread. */
struct tls_identity *tls_identity_new(const struct tls_pair *pair, char why[TLS_WHY_MAX]);

/* The same for PEM text in memory. The paths of `pair` are for messages only. */
struct tls_identity *tls_identity_parse(const struct tls_pair *pair, struct span certificate,
                                        struct span key, char why[TLS_WHY_MAX]);
void tls_identity_free(struct tls_identity *identity);

/* Whether a name of the certificate covers `host`, which is in lower case and has no port
 * (RFC 9525 section 6.3). An IPv6 address may have brackets. The host "*.example.org" is covered by
 * the same name only. */
bool tls_identity_covers(const struct tls_identity *identity, struct span host);

/* The kind of the key, in at most 7 letters: "ECDSA", "RSA" or "EdDSA"; "other" for the rest. */
const char *tls_identity_key(const struct tls_identity *identity);

/* Writes warning number `index`, counted from 0, as one line. False: there are no more. A server
 * can use the identity in spite of a warning, but clients may refuse it. */
bool tls_identity_warning(const struct tls_identity *identity, unsigned index, int64_t now_s,
                          char out[TLS_WHY_MAX]);

/* Reads a whole file into memory that core dumps leave out; tls_identity_forget clears and frees
 * it. `directory_fd` and `flags` are as for openat. 0 or -errno; -EFBIG: more than TLS_FILE_MAX
 * bytes; -EINVAL: not a regular file. */
MUST_USE int tls_identity_read(int directory_fd, const char *path, int flags,
                               struct span *ret_text);
void tls_identity_forget(struct span text);

/* Prints a reason. Always false, for functions that fail with one. */
bool tls_identity_refuse(char why[TLS_WHY_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints that memory was short while `work` was done. Always false. */
bool tls_identity_refuse_for_memory(char why[TLS_WHY_MAX], const char *work);

/* Whether the text is an IPv4 or IPv6 address, without brackets. Certificates have addresses and
 * host names apart. */
bool tls_identity_is_address(const char *text);
