/* SPDX-License-Identifier: MIT */
#include "tls/client.h"

#include "base/buf.h"
#include "base/escape.h"
#include "tls/identity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct tls_client {
    SSL_CTX *context;
    bool insecure;
};

/* ---- sessions ---- */

static int place_index; /* of the pointer to the caller's ticket, in the SSL */

static void make_place_index(void)
{
    place_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* OpenSSL calls it for each ticket that a server sends, and at the end of a full handshake of
 * TLS 1.2. Returns 1 to keep the reference. */
static int keep_ticket(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION **place = SSL_get_ex_data(ssl, place_index);
    if (!place)
        return 0;
    SSL_SESSION_free(*place);
    *place = session;
    return 1;
}

void tls_client_forget(SSL_SESSION **ticket)
{
    SSL_SESSION_free(*ticket);
    *ticket = NULL;
}

/* ---- the client ---- */

/* Reads the authorities into `context`. */
static bool read_authorities(SSL_CTX *context, const struct tls_client_plan *plan,
                             char why[TLS_CLIENT_WHY_MAX])
{
    if (plan->insecure)
        return true;
    if (!plan->authorities) {
        if (SSL_CTX_set_default_verify_paths(context) == 1)
            return true;
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "the certificates of the system cannot be read");
        return false;
    }
    errno = 0;
    if (SSL_CTX_load_verify_file(context, plan->authorities) == 1)
        return true;
    int error = ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_SYS ? errno : 0;
    (void)snprintf(why, TLS_CLIENT_WHY_MAX, "%.200s: %s", plan->authorities,
                   error != 0 ? strerror(error) : "the file has no certificate in PEM form");
    return false;
}

static bool set_up_context(SSL_CTX *context, const struct tls_client_plan *plan)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    const unsigned char *offered = plan->http2 ? both : both + 3;
    unsigned offered_len = sizeof(both) - 1 - (plan->http2 ? 0 : 3);
    SSL_CTX_set_verify(context, plan->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_ticket);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    /* Without it each connection keeps 34 KB of buffers of OpenSSL. */
    (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    /* The functions have opposite signs: 0 is success for ALPN. */
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_alpn_protos(context, offered, offered_len) == 0;
}

struct tls_client *tls_client_new(const struct tls_client_plan *plan, char why[TLS_CLIENT_WHY_MAX])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&once, make_place_index) == 0);
    struct tls_client *client = calloc(1, sizeof(*client));
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    (void)snprintf(why, TLS_CLIENT_WHY_MAX, "out of memory");
    if (!client || !context || place_index < 0 || !set_up_context(context, plan) ||
        !read_authorities(context, plan, why)) {
        SSL_CTX_free(context);
        free(client);
        ERR_clear_error();
        return NULL;
    }
    client->context = context;
    client->insecure = plan->insecure;
    return client;
}

void tls_client_free(struct tls_client *client)
{
    if (client)
        SSL_CTX_free(client->context);
    free(client);
}

/* ---- a connection ---- */

/* Sets the name that the certificate must cover, and the one that the server learns. A dot at the
 * end of a name belongs to neither. */
static bool set_name(SSL *ssl, const char *name)
{
    char host[256];
    X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
    if (tls_identity_is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(parameters, name) == 1;
    int len = snprintf(host, sizeof(host), "%s", name);
    if (len < 1 || len >= (int)sizeof(host))
        return false;
    if (host[len - 1] == '.')
        host[len - 1] = '\0';
    X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, host) == 1 &&
           X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1;
}

SSL *tls_client_connect(struct tls_client *client, const char *name, SSL_SESSION **ticket)
{
    SSL *ssl = SSL_new(client->context);
    bool resumable = ticket && *ticket && SSL_SESSION_is_resumable(*ticket) == 1;
    if (!ssl || !set_name(ssl, name) || SSL_set_ex_data(ssl, place_index, ticket) != 1 ||
        (resumable && SSL_set_session(ssl, *ticket) != 1)) {
        SSL_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

SSL *tls_client_probe(struct tls_client *client, const char *name)
{
    SSL *ssl = tls_client_connect(client, name, NULL);
    if (ssl)
        SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
    return ssl;
}

bool tls_client_ended(const SSL *ssl)
{
    return (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

/* ---- why not ---- */

bool tls_client_distrusts(unsigned long error)
{
    return ERR_GET_LIB(error) == ERR_LIB_SSL &&
           ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

const char *tls_client_reason(unsigned long error)
{
    const char *reason = error != 0 ? ERR_reason_error_string(error) : NULL;
    return reason ? reason : "no reason is known";
}

/* Adds one name of a certificate. A server chooses the bytes. */
static void add_name(struct buf *out, const GENERAL_NAME *name)
{
    char text[INET6_ADDRSTRLEN + 1];
    char clean[64];
    struct span plain = { NULL, 0 };
    if (name->type == GEN_DNS) {
        plain = span_of((const char *)ASN1_STRING_get0_data(name->d.dNSName),
                        (size_t)ASN1_STRING_length(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
        int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
        int needed = family == AF_INET ? 4 : 16;
        if (ASN1_STRING_length(name->d.iPAddress) == needed &&
            inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text)))
            plain = span_text(text);
    }
    if (plain.len == 0)
        return;
    if (out->len > 0)
        buf_add(out, SPAN(", "));
    buf_add(out, span_of(clean, escape_text(clean, sizeof(clean), plain, ESCAPE_TEXT)));
}

/* The first names of a certificate, as one text. */
static void list_names(const X509 *certificate, char *out, size_t size)
{
    enum { NAMES_MAX = 3 };
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    struct buf text = buf_over(out, size - 1);
    int count = sk_GENERAL_NAME_num(names);
    for (int i = 0; i < count && i < NAMES_MAX; i++)
        add_name(&text, sk_GENERAL_NAME_value(names, i));
    if (count > NAMES_MAX)
        buf_add(&text, SPAN(" and others"));
    if (text.len == 0)
        buf_add(&text, SPAN("no host"));
    out[text.len] = '\0';
    GENERAL_NAMES_free(names);
}

static void write_date(const ASN1_TIME *time, char out[32])
{
    struct tm tm;
    if (ASN1_TIME_to_tm(time, &tm) != 1 || strftime(out, 32, "%Y-%m-%d %H:%M UTC", &tm) == 0)
        (void)snprintf(out, 32, "an unknown date");
}

static enum tls_client_cure doubt_dates(const X509 *certificate, char why[TLS_CLIENT_WHY_MAX])
{
    char date[32];
    const ASN1_TIME *from = X509_get0_notBefore(certificate), *to = X509_get0_notAfter(certificate);
    bool early = X509_cmp_current_time(from) > 0, late = X509_cmp_current_time(to) < 0;
    write_date(early ? from : to, date);
    if (early || late)
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, early ? "is valid only from %s" : "ended at %s",
                       date);
    else
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "has an issuer whose own certificate has ended");
    return TLS_CURE_DATE;
}

static enum tls_client_cure doubt_name(const X509 *certificate, const char *name,
                                       char why[TLS_CLIENT_WHY_MAX])
{
    char names[220];
    list_names(certificate, names, sizeof(names));
    (void)snprintf(why, TLS_CLIENT_WHY_MAX, "is for %s, and not for %.100s", names, name);
    return TLS_CURE_NAME;
}

enum tls_client_cure tls_client_doubt(const struct tls_client *client, const SSL *ssl,
                                      const char *name, char why[TLS_CLIENT_WHY_MAX])
{
    const X509 *certificate = SSL_get0_peer_certificate(ssl);
    long result = SSL_get_verify_result(ssl);
    why[0] = '\0';
    if (client->insecure || (result == X509_V_OK && certificate))
        return TLS_CURE_NONE;
    if (!certificate) {
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "is missing");
        return TLS_CURE_OTHER;
    }
    switch (result) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "is self-signed");
        return TLS_CURE_AUTHORITY;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "has an authority that is not trusted here");
        return TLS_CURE_AUTHORITY;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        (void)snprintf(why, TLS_CLIENT_WHY_MAX,
                       "has an issuer that is neither known here nor sent by the server");
        return TLS_CURE_AUTHORITY;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return doubt_name(certificate, name, why);
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return doubt_dates(certificate, why);
    default:
        (void)snprintf(why, TLS_CLIENT_WHY_MAX, "is not accepted (%s)",
                       X509_verify_cert_error_string(result));
        return TLS_CURE_OTHER;
    }
}
