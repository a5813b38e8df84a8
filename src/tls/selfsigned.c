/* SPDX-License-Identifier: MIT */
#include "tls/selfsigned.h"

#include "base/buf.h"
#include "os/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME        "self-signed.pem"
#define CERTIFICATE_NAME "self-signed.crt"

enum { BACKDATED_S = 3600 /* a client's clock may be late */ };

/* ---- names and places ---- */

static bool is_dns_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");
    return len > 0 && len <= 64 && name[len] == '\0' && name[0] != '-' && name[0] != '.' &&
           !strstr(name, "..");
}

void tls_selfsigned_local(struct tls_selfsigned_names *ret_names)
{
    *ret_names = (struct tls_selfsigned_names){ .list = { "localhost", "127.0.0.1", "::1" } };
    char *machine = ret_names->machine;
    if (gethostname(machine, sizeof(ret_names->machine) - 1) < 0)
        return;
    for (char *at = machine; *at; at++)
        *at = ascii_lower(*at);
    struct in_addr address;
    if (is_dns_name(machine) && strcmp(machine, "localhost") != 0 &&
        inet_pton(AF_INET, machine, &address) != 1)
        ret_names->list[3] = machine;
}

int tls_selfsigned_folder(char out[TLS_SELFSIGNED_PATH_MAX])
{
    int len;
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (geteuid() == 0) {
        len = snprintf(out, TLS_SELFSIGNED_PATH_MAX, "/var/lib/weir");
    } else if (state && state[0] == '/') {
        len = snprintf(out, TLS_SELFSIGNED_PATH_MAX, "%s/weir", state);
    } else {
        const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
        if (user)
            home = user->pw_dir;
        if (!home || home[0] != '/')
            return -ENOENT;
        len = snprintf(out, TLS_SELFSIGNED_PATH_MAX, "%s/.local/state/weir", home);
    }
    return len > 0 && len < TLS_SELFSIGNED_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static bool refuse_path(char why[TLS_WHY_MAX], const char *what, const char *path,
                        const char *reason, const char *cure)
{
    return tls_identity_refuse(why, "cannot use the %s %s for a self-signed certificate (%s). %s.",
                               what, path, reason, cure);
}

static bool refuse_making(char why[TLS_WHY_MAX], const char *reason)
{
    return tls_identity_refuse(why,
                               "cannot make a self-signed certificate (%s). Set "
                               "tls-certificate and tls-key, or try again.",
                               reason);
}

static int make_parents(const char *folder)
{
    char path[TLS_SELFSIGNED_PATH_MAX];
    if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    for (char *at = path + 1;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        char was = *at;
        *at = '\0';
        if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST)
            return -errno;
        *at = was;
        if (was == '\0')
            return 0;
    }
}

/* Opens the folder, and locks it until the descriptor is closed. */
static int open_folder(const char *folder, char why[TLS_WHY_MAX])
{
    struct stat info;
    int rc = make_parents(folder);
    if (rc < 0) {
        (void)refuse_path(why, "folder", folder, strerror(-rc), "Make it, with mode 0700");
        return rc;
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    rc = fd < 0 ? -errno : os_file_stat(fd, &info);
    if (rc < 0)
        (void)refuse_path(why, "folder", folder, strerror(-rc), "Make it a folder of this user");
    else if (info.st_uid != geteuid()) {
        (void)refuse_path(why, "folder", folder, "it belongs to another user", "Change its owner");
        rc = -EPERM;
    } else if (info.st_mode & (S_IWGRP | S_IWOTH)) {
        (void)refuse_path(why, "folder", folder, "other users may write to it",
                          "Change its mode to 0700");
        rc = -EPERM;
    }
    if (rc < 0) {
        os_file_close(fd);
        return rc;
    }
    /* A file system without locks is no obstacle: then the last process to make the file wins. */
    while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
        continue;
    return fd;
}

/* ---- the file ---- */

static bool is_current(const struct tls_identity *identity, const char *const *names, int64_t now_s)
{
    if (!identity->self_signed || identity->begins_s > now_s ||
        identity->ends_s - now_s < TLS_SELFSIGNED_RENEW_S)
        return false;
    size_t i = 0;
    while (names[i] && identity->names[i] && strcmp(names[i], identity->names[i]) == 0)
        i++;
    return !names[i] && !identity->names[i];
}

/* Loads the file, if it has what is needed. True with *ret_identity NULL: it has to be made. */
static bool load_current(int folder, const char *path, const char *const *names, int64_t now_s,
                         struct tls_identity **ret_identity, char why[TLS_WHY_MAX])
{
    struct stat info;
    struct span text;
    char ignored[TLS_WHY_MAX];
    *ret_identity = NULL;
    int rc = os_file_stat_at(folder, FILE_NAME, &info);
    if (rc == -ENOENT)
        return true;
    if (rc == 0 && !S_ISREG(info.st_mode))
        return refuse_path(why, "file", path, "it is a link or a folder", "Remove it");
    if (rc == 0 && info.st_uid != geteuid())
        return refuse_path(why, "file", path, "it belongs to another user", "Remove it");
    if (rc == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)))
        return true; /* other users may have read the key */
    if (rc == 0)
        rc = tls_identity_read(folder, FILE_NAME, O_NOFOLLOW, &text);
    if (rc < 0 && rc != -EFBIG)
        return refuse_path(why, "file", path, strerror(-rc), "Remove it");
    if (rc == -EFBIG)
        return true;
    const struct tls_pair pair = { path, path };
    struct tls_identity *identity = tls_identity_parse(&pair, text, text, ignored);
    tls_identity_forget(text);
    if (identity && !is_current(identity, names, now_s)) {
        tls_identity_free(identity);
        identity = NULL;
    }
    *ret_identity = identity;
    return true;
}

static int write_all(int fd, struct span bytes)
{
    while (bytes.len > 0) {
        ssize_t len = write(fd, bytes.at, bytes.len);
        if (len < 0 && errno != EINTR)
            return -errno;
        bytes = span_skip(bytes, len > 0 ? (size_t)len : 0);
    }
    return 0;
}

/* Puts a file into its place as a whole. */
static int replace_file(int folder, const char *name, mode_t mode, struct span bytes)
{
    uint64_t random;
    char other[40];
    if (RAND_bytes((unsigned char *)&random, sizeof(random)) != 1)
        return -EIO;
    (void)snprintf(other, sizeof(other), ".%s.%016llx", name, (unsigned long long)random);
    int fd = openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = fchmod(fd, mode) < 0 ? -errno : 0;
    if (rc == 0)
        rc = write_all(fd, bytes);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    os_file_close(fd);
    if (rc == 0 && renameat(folder, other, folder, name) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlinkat(folder, other, 0);
    return rc;
}

static struct span bio_text(BIO *bio)
{
    char *at = NULL;
    long len = BIO_get_mem_data(bio, &at);
    return span_of(at, len > 0 ? (size_t)len : 0);
}

/* The copy is for a user who wants clients to trust the certificate. */
static int keep_copy(int folder, X509 *certificate)
{
    struct span before = { 0 };
    BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || !PEM_write_bio_X509(bio, certificate)) {
        BIO_free(bio);
        return -ENOMEM;
    }
    int rc = tls_identity_read(folder, CERTIFICATE_NAME, O_NOFOLLOW, &before);
    rc = rc == 0 && span_equal(before, bio_text(bio))
             ? 0
             : replace_file(folder, CERTIFICATE_NAME, 0644, bio_text(bio));
    tls_identity_forget(before);
    BIO_free(bio);
    return rc;
}

/* ---- making ---- */

static bool add_names(X509 *certificate, const char *const *names)
{
    GENERAL_NAMES *all = sk_GENERAL_NAME_new_null();
    bool added = all != NULL;
    for (; added && *names; names++) {
        struct in6_addr address;
        bool is_address = inet_pton(AF_INET, *names, &address) == 1 ||
                          inet_pton(AF_INET6, *names, &address) == 1;
        GENERAL_NAME *name =
            a2i_GENERAL_NAME(NULL, NULL, NULL, is_address ? GEN_IPADD : GEN_DNS, *names, 0);
        added = name && sk_GENERAL_NAME_push(all, name) > 0;
        if (!added)
            GENERAL_NAME_free(name);
    }
    added = added &&
            X509_add1_ext_i2d(certificate, NID_subject_alt_name, all, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(all);
    return added;
}

static bool add_extensions(X509 *certificate)
{
    static const struct {
        int nid;
        const char *value;
    } extensions[] = { { NID_basic_constraints, "critical,CA:FALSE" },
                       { NID_key_usage, "critical,digitalSignature" },
                       { NID_ext_key_usage, "serverAuth" },
                       { NID_subject_key_identifier, "hash" } };
    X509V3_CTX context;
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
        X509_EXTENSION *extension =
            X509V3_EXT_conf_nid(NULL, &context, extensions[i].nid, extensions[i].value);
        bool added = extension && X509_add_ext(certificate, extension, -1) == 1;
        X509_EXTENSION_free(extension);
        if (!added)
            return false;
    }
    return true;
}

static bool set_subject(X509 *certificate, const char *name)
{
    X509_NAME *subject = X509_NAME_new();
    bool set = subject &&
               X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                          (const unsigned char *)"weir, self-signed", -1, -1, 0) &&
               X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                          -1, -1, 0) &&
               X509_set_subject_name(certificate, subject) &&
               X509_set_issuer_name(certificate, subject);
    X509_NAME_free(subject);
    return set;
}

static bool set_serial(X509 *certificate)
{
    BIGNUM *number = BN_new();
    bool set = number && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
               BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return set;
}

static X509 *make_certificate(EVP_PKEY *key, const char *const *names, int64_t now_s)
{
    X509 *certificate = X509_new();
    int64_t begins_s = now_s - BACKDATED_S;
    if (certificate && X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
        ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)begins_s) &&
        ASN1_TIME_set(X509_getm_notAfter(certificate),
                      (time_t)(begins_s + TLS_SELFSIGNED_LIFE_S)) &&
        set_subject(certificate, names[0]) && X509_set_pubkey(certificate, key) &&
        add_extensions(certificate) && add_names(certificate, names) &&
        X509_sign(certificate, key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* Makes the file, and parses what it wrote. */
static struct tls_identity *make_file(int folder, const char *path, const char *const *names,
                                      int64_t now_s, char why[TLS_WHY_MAX])
{
    const struct tls_pair pair = { path, path };
    struct tls_identity *identity = NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = key ? make_certificate(key, names, now_s) : NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    if (!certificate || !bio || !PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) ||
        !PEM_write_bio_X509(bio, certificate)) {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        (void)refuse_making(why, reason ? reason : "out of memory");
    } else {
        identity = tls_identity_parse(&pair, bio_text(bio), bio_text(bio), why);
        int rc = identity ? replace_file(folder, FILE_NAME, 0600, bio_text(bio)) : 0;
        if (rc < 0) {
            (void)refuse_path(why, "file", path, strerror(-rc), "Check the folder and its disk");
            tls_identity_free(identity);
            identity = NULL;
        }
    }
    BIO_free(bio); /* clears the key's text */
    X509_free(certificate);
    EVP_PKEY_free(key);
    return identity;
}

bool tls_selfsigned_get(const char *folder, const char *const *names, int64_t now_s,
                        struct tls_selfsigned *ret_found, char why[TLS_WHY_MAX])
{
    struct tls_selfsigned found = { 0 };
    struct tls_identity *identity = NULL;
    ERR_clear_error();
    if (snprintf(found.file, sizeof(found.file), "%s/" FILE_NAME, folder) >=
            (int)sizeof(found.file) ||
        snprintf(found.certificate, sizeof(found.certificate), "%s/" CERTIFICATE_NAME, folder) >=
            (int)sizeof(found.certificate))
        return refuse_making(why, strerror(ENAMETOOLONG));
    int fd = open_folder(folder, why);
    if (fd < 0)
        return false;
    bool done = load_current(fd, found.file, names, now_s, &identity, why);
    if (done && !identity) {
        identity = make_file(fd, found.file, names, now_s, why);
        found.made = done = identity != NULL;
    }
    int rc = done ? keep_copy(fd, identity->leaf) : 0;
    if (rc < 0)
        done = refuse_path(why, "file", found.certificate, strerror(-rc),
                           "Check the folder and its disk");
    ERR_clear_error();
    os_file_close(fd);
    if (done) {
        memcpy(found.fingerprint, identity->fingerprint, sizeof(found.fingerprint));
        found.ends_s = identity->ends_s;
        *ret_found = found;
    }
    tls_identity_free(identity);
    return done;
}
