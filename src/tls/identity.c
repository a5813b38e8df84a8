/* SPDX-License-Identifier: MIT */
#include "tls/identity.h"

#include "base/buf.h"
#include "base/calendar.h"
#include "base/hosts.h"
#include "os/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

bool tls_identity_refuse(char why[TLS_WHY_MAX], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, TLS_WHY_MAX, format, arguments);
    va_end(arguments);
    return false;
}

bool tls_identity_refuse_for_memory(char why[TLS_WHY_MAX], const char *work)
{
    return tls_identity_refuse(why, "out of memory while %s. Free some memory, and try again.",
                               work);
}

/* ---- files ---- */

int tls_identity_read(int directory_fd, const char *path, int flags, struct span *ret_text)
{
    struct stat info;
    /* Without O_NONBLOCK, opening a fifo waits for a writer. */
    int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
    if (fd < 0)
        return -errno;
    int rc = os_file_stat(fd, &info);
    if (rc == 0 && !S_ISREG(info.st_mode))
        rc = -EINVAL;
    if (rc == 0 && info.st_size > TLS_FILE_MAX)
        rc = -EFBIG;
    char *text = MAP_FAILED;
    size_t len = rc == 0 ? (size_t)info.st_size : 0;
    if (rc == 0) {
        text = mmap(NULL, len + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        rc = text == MAP_FAILED ? -errno : 0;
    }
    if (rc == 0) {
        (void)madvise(text, len + 1, MADV_DONTDUMP); /* a kernel without it has no core dumps */
        rc = os_file_read_at(fd, text, len, 0);
        if (rc < 0)
            tls_identity_forget(span_of(text, len));
        else
            *ret_text = span_of(text, len);
    }
    os_file_close(fd);
    return rc;
}

void tls_identity_forget(struct span text)
{
    char *at = (char *)(uintptr_t)text.at;
    if (!at)
        return;
    OPENSSL_cleanse(at, text.len);
    (void)munmap(at, text.len + 1);
}

static bool read_pem(const char *what, const char *path, struct span *ret_text,
                     char why[TLS_WHY_MAX])
{
    int rc = tls_identity_read(AT_FDCWD, path, 0, ret_text);
    if (rc == 0)
        return true;
    const char *cure = rc == -EACCES || rc == -EPERM
                           ? "Start weir as a user that may read the file, or change its mode"
                       : rc == -ENOENT || rc == -ENOTDIR ? "Check the path"
                       : rc == -EFBIG                    ? "Give a PEM file of at most 1 MiB"
                       : rc == -EINVAL                   ? "Give a regular file"
                                                         : "Check the file and its disk";
    return tls_identity_refuse(why, "cannot read the %s %s (%s). %s.", what, path, strerror(-rc),
                               cure);
}

/* ---- parsing ---- */

/* Whether memory was short since the queue of errors was empty. Empties it. */
static bool memory_failed(void)
{
    bool failed = false;
    for (unsigned long error = ERR_get_error(); error != 0; error = ERR_get_error())
        failed = failed || ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
    return failed;
}

static bool refuse_for_memory(char why[TLS_WHY_MAX])
{
    return tls_identity_refuse_for_memory(why, "reading a certificate");
}

/* OpenSSL calls it for an encrypted key, in place of a question on the terminal. */
static int note_password(char *out, int size, int writes, void *asked)
{
    (void)out, (void)size, (void)writes;
    if (asked)
        *(bool *)asked = true;
    return -1;
}

static bool add_certificate(struct tls_identity *identity, X509 *certificate)
{
    if (!identity->leaf)
        identity->leaf = certificate;
    else if (sk_X509_push(identity->chain, certificate) <= 0) {
        X509_free(certificate);
        return false;
    }
    return true;
}

static bool parse_chain(struct tls_identity *identity, const char *path, struct span text,
                        char why[TLS_WHY_MAX])
{
    BIO *bio = BIO_new_mem_buf(text.at, (int)text.len);
    identity->chain = sk_X509_new_null();
    X509 *certificate = NULL;
    bool added = bio && identity->chain;
    while (added && sk_X509_num(identity->chain) <= TLS_CHAIN_MAX &&
           (certificate = PEM_read_bio_X509(bio, NULL, note_password, NULL)))
        added = add_certificate(identity, certificate);
    BIO_free(bio);
    unsigned long error = ERR_peek_last_error();
    if (!added || memory_failed())
        return refuse_for_memory(why);

    int count = sk_X509_num(identity->chain) + (identity->leaf != NULL);
    if (certificate)
        return tls_identity_refuse(why,
                                   "the file %s has more than %d certificates. Keep those of the "
                                   "server and its issuers.",
                                   path, TLS_CHAIN_MAX + 1);
    if (ERR_GET_LIB(error) != ERR_LIB_PEM || ERR_GET_REASON(error) != PEM_R_NO_START_LINE)
        return tls_identity_refuse(why,
                                   "certificate number %d in the file %s is damaged. Copy the file "
                                   "again from its source.",
                                   count + 1, path);
    if (count == 0)
        return tls_identity_refuse(why,
                                   "the file %s has no certificate in PEM form. Give a file with "
                                   "the certificate of the server and those of its issuers.",
                                   path);
    return true;
}

static bool parse_key(struct tls_identity *identity, const char *path, struct span text,
                      char why[TLS_WHY_MAX])
{
    bool asked = false;
    BIO *bio = BIO_new_mem_buf(text.at, (int)text.len);
    if (bio)
        identity->key = PEM_read_bio_PrivateKey(bio, NULL, note_password, &asked);
    BIO_free(bio);
    if (identity->key)
        return true;
    if (asked)
        return tls_identity_refuse(why,
                                   "the key %s is encrypted, and weir does not ask for a password. "
                                   "Write it without one: openssl pkey -in %s -out NEW-FILE",
                                   path, path);
    if (!bio || memory_failed())
        return refuse_for_memory(why);
    return tls_identity_refuse(why,
                               "the file %s has no private key in PEM form, or the key is damaged. "
                               "Give the file with the key of the certificate.",
                               path);
}

static bool check_key(const struct tls_identity *identity, const struct tls_pair *pair,
                      char why[TLS_WHY_MAX])
{
    if (X509_check_private_key(identity->leaf, identity->key) == 1)
        return true;
    if (memory_failed())
        return refuse_for_memory(why);
    if (!X509_get0_pubkey(identity->leaf))
        return tls_identity_refuse(why,
                                   "OpenSSL does not know the kind of key in the certificate %s, "
                                   "or memory is short. Have one issued for a key of ECDSA P-256.",
                                   pair->certificate);
    for (int i = 0; i < sk_X509_num(identity->chain); i++) {
        if (X509_check_private_key(sk_X509_value(identity->chain, i), identity->key) != 1)
            continue;
        return tls_identity_refuse(
            why,
            "the key %s belongs to certificate number %d in the file %s. Put this "
            "certificate first, and those of its issuers behind it.",
            pair->key, i + 2, pair->certificate);
    }
    return tls_identity_refuse(
        why,
        "the key %s does not belong to the certificate %s. Give the key for which the "
        "certificate was issued.",
        pair->key, pair->certificate);
}

/* ---- what the leaf says ---- */

static bool read_time(const ASN1_TIME *time, int64_t *ret_s)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(time, &tm))
        return false;
    const struct calendar when = { .year = tm.tm_year + 1900,
                                   .month = tm.tm_mon + 1,
                                   .day = tm.tm_mday,
                                   .hour = tm.tm_hour,
                                   .minute = tm.tm_min,
                                   .second = tm.tm_sec };
    *ret_s = calendar_seconds(&when);
    return true;
}

bool tls_identity_is_address(const char *text)
{
    struct in6_addr address;
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

/* The name as text; empty for a kind of name that no host is compared with. */
static void print_name(const GENERAL_NAME *name, char out[HOSTS_NAME_MAX + 1])
{
    out[0] = '\0';
    if (name->type == GEN_IPADD) {
        int len = ASN1_STRING_length(name->d.iPAddress);
        if (len == 4 || len == 16)
            (void)inet_ntop(len == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress),
                            out, HOSTS_NAME_MAX + 1);
        return;
    }
    if (name->type != GEN_DNS)
        return;
    const unsigned char *at = ASN1_STRING_get0_data(name->d.dNSName);
    size_t len = (size_t)ASN1_STRING_length(name->d.dNSName);
    if (len == 0 || len > HOSTS_NAME_MAX)
        return;
    for (size_t i = 0; i < len; i++) {
        if (at[i] <= ' ' || at[i] >= 0x7f) {
            out[0] = '\0';
            return;
        }
        out[i] = ascii_lower((char)at[i]);
    }
    out[len] = '\0';
    if (tls_identity_is_address(out)) /* an address counts as iPAddress only */
        out[0] = '\0';
}

static bool read_names(struct tls_identity *identity, const char *path, char why[TLS_WHY_MAX])
{
    int found;
    GENERAL_NAMES *all = X509_get_ext_d2i(identity->leaf, NID_subject_alt_name, &found, NULL);
    if (!all && memory_failed())
        return refuse_for_memory(why);
    if (!all && found != -1)
        return tls_identity_refuse(
            why, "the certificate %s has names that cannot be read. Have another one issued.",
            path);
    int count = all ? sk_GENERAL_NAME_num(all) : 0;
    identity->names = calloc((size_t)count + 1, sizeof(identity->names[0]));
    bool copied = identity->names != NULL;
    for (int i = 0, used = 0; copied && i < count; i++) {
        char text[HOSTS_NAME_MAX + 1];
        print_name(sk_GENERAL_NAME_value(all, i), text);
        if (text[0] == '\0')
            continue;
        identity->names[used] = strdup(text);
        copied = identity->names[used++] != NULL;
    }
    GENERAL_NAMES_free(all);
    return copied || refuse_for_memory(why);
}

static bool read_fingerprint(struct tls_identity *identity)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    char pair[3];
    if (!X509_digest(identity->leaf, EVP_sha256(), digest, &len))
        return false;
    struct buf text = buf_over(identity->fingerprint, sizeof(identity->fingerprint) - 1);
    for (unsigned i = 0; i < len; i++) {
        if (i > 0)
            buf_add_char(&text, ':');
        (void)snprintf(pair, sizeof(pair), "%02X", digest[i]);
        buf_add(&text, span_text(pair));
    }
    return true;
}

static bool read_leaf(struct tls_identity *identity, const char *path, char why[TLS_WHY_MAX])
{
    if (!read_time(X509_get0_notBefore(identity->leaf), &identity->begins_s) ||
        !read_time(X509_get0_notAfter(identity->leaf), &identity->ends_s))
        return tls_identity_refuse(
            why, "the certificate %s has a date that cannot be read. Have another one issued.",
            path);
    identity->self_signed = X509_NAME_cmp(X509_get_subject_name(identity->leaf),
                                          X509_get_issuer_name(identity->leaf)) == 0;
    identity->has_intermediate = sk_X509_num(identity->chain) > 0;
    identity->file = strdup(path);
    if (!identity->file || !read_fingerprint(identity))
        return refuse_for_memory(why);
    return read_names(identity, path, why);
}

struct tls_identity *tls_identity_parse(const struct tls_pair *pair, struct span certificate,
                                        struct span key, char why[TLS_WHY_MAX])
{
    ERR_clear_error();
    struct tls_identity *identity = calloc(1, sizeof(*identity));
    bool whole = identity ? parse_chain(identity, pair->certificate, certificate, why) &&
                                parse_key(identity, pair->key, key, why) &&
                                check_key(identity, pair, why) &&
                                read_leaf(identity, pair->certificate, why)
                          : refuse_for_memory(why);
    ERR_clear_error();
    if (whole)
        return identity;
    tls_identity_free(identity);
    return NULL;
}

struct tls_identity *tls_identity_new(const struct tls_pair *pair, char why[TLS_WHY_MAX])
{
    struct tls_identity *identity = NULL;
    struct span certificate = { 0 }, key = { 0 };
    /* One file is read once: between two reads another process may replace it. */
    bool same = strcmp(pair->certificate, pair->key) == 0;
    if (read_pem("certificate", pair->certificate, &certificate, why) &&
        (same || read_pem("key", pair->key, &key, why)))
        identity = tls_identity_parse(pair, certificate, same ? certificate : key, why);
    tls_identity_forget(certificate);
    tls_identity_forget(key);
    return identity;
}

void tls_identity_free(struct tls_identity *identity)
{
    if (!identity)
        return;
    X509_free(identity->leaf);
    sk_X509_pop_free(identity->chain, X509_free);
    EVP_PKEY_free(identity->key);
    for (char **name = identity->names; name && *name; name++)
        free(*name);
    free(identity->names);
    free(identity->file);
    free(identity);
}

/* ---- questions ---- */

/* An address without brackets, as inet_ntop writes it. False: it is no address. */
static bool normalise_address(struct span host, char out[INET6_ADDRSTRLEN])
{
    if (span_starts(host, SPAN("[")) && span_ends(host, SPAN("]")) && host.len > 2)
        host = span_of(host.at + 1, host.len - 2);
    struct in6_addr address;
    char text[INET6_ADDRSTRLEN];
    if (host.len == 0 || host.len >= sizeof(text) || memchr(host.at, '\0', host.len))
        return false;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    int family = inet_pton(AF_INET, text, &address) == 1    ? AF_INET
                 : inet_pton(AF_INET6, text, &address) == 1 ? AF_INET6
                                                            : 0;
    return family != 0 && inet_ntop(family, &address, out, INET6_ADDRSTRLEN) != NULL;
}

/* "*" stands for one whole label, and at least two labels follow it. */
static bool wildcard_covers(struct span name, struct span host)
{
    const char *dot = memchr(host.at, '.', host.len);
    if (!span_starts(name, SPAN("*.")) || !dot || dot == host.at)
        return false;
    struct span below = span_skip(name, 1);
    return memchr(below.at + 1, '.', below.len - 1) &&
           span_equal(below, span_skip(host, (size_t)(dot - host.at)));
}

bool tls_identity_covers(const struct tls_identity *identity, struct span host)
{
    char address[INET6_ADDRSTRLEN];
    bool by_name = !normalise_address(host, address);
    if (!by_name)
        host = span_text(address);
    else if (host.len > 1 && host.at[host.len - 1] == '.')
        host.len--;
    if (host.len == 0)
        return false;
    for (char *const *name = identity->names; *name; name++)
        if (span_equal(span_text(*name), host) ||
            (by_name && wildcard_covers(span_text(*name), host)))
            return true;
    return false;
}

/* The number, from 2, of the first certificate that did not issue the one before it; 0: none. */
static int find_disorder(const struct tls_identity *identity)
{
    X509 *before = identity->leaf;
    for (int i = 0; i < sk_X509_num(identity->chain); i++) {
        X509 *issuer = sk_X509_value(identity->chain, i);
        if (X509_check_issued(issuer, before) != X509_V_OK)
            return i + 2;
        before = issuer;
    }
    return 0;
}

const char *tls_identity_key(const struct tls_identity *identity)
{
    switch (EVP_PKEY_get_base_id(identity->key)) {
    case EVP_PKEY_EC:
        return "ECDSA";
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        return "RSA";
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448:
        return "EdDSA";
    default:
        return "other";
    }
}

bool tls_identity_warning(const struct tls_identity *identity, unsigned index, int64_t now_s,
                          char out[TLS_WHY_MAX])
{
    char begins[CALENDAR_LEN + 1] = "", ends[CALENDAR_LEN + 1] = "";
    calendar_format(begins, identity->begins_s);
    calendar_format(ends, identity->ends_s);
    int disorder = find_disorder(identity);
    unsigned at = 0;

    if (now_s < identity->begins_s && at++ == index)
        (void)snprintf(out, TLS_WHY_MAX,
                       "the certificate %s is valid from %s on. Clients refuse it until then. "
                       "Check the clock of this machine.",
                       identity->file, begins);
    else if (now_s > identity->ends_s && at++ == index)
        (void)snprintf(out, TLS_WHY_MAX,
                       "the certificate %s ended at %s. Clients refuse it. Renew it.",
                       identity->file, ends);
    else if (!identity->names[0] && at++ == index)
        (void)snprintf(out, TLS_WHY_MAX,
                       "the certificate %s has no name of a host (subjectAltName). Clients refuse "
                       "it. Have one issued for the hosts of the site.",
                       identity->file);
    else if (disorder && at++ == index)
        (void)snprintf(out, TLS_WHY_MAX,
                       "certificate number %d in the file %s did not issue the one before it. "
                       "Some clients refuse this. Put the certificate of the server first, then "
                       "each issuer in turn.",
                       disorder, identity->file);
    else if (!identity->has_intermediate && !identity->self_signed && at++ == index)
        (void)snprintf(out, TLS_WHY_MAX,
                       "the file %s has only the certificate of the server. Clients that do not "
                       "know its issuer refuse it. Append the certificate of the issuer.",
                       identity->file);
    else
        return false;
    return true;
}
