/* SPDX-License-Identifier: MIT
 *
 * Sites with the same files share one SSL_CTX, which uses about 20 KiB. The version and the session
 * id context differ between such sites. They are set for each connection, when its server name is
 * known.
 */
#include "tls/server.h"

#include "base/buf.h"
#include "base/hosts.h"
#include "tls/records.h"
#include "tls/schedule.h"
#include "tls/tickets.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The protocols for ALPN (RFC 7301), the preferred one first. Each has its length before it. */
#define HTTP_1_1 "\x08http/1.1"
#define HTTP_2   "\x02h2"

static const char *const wanted_groups[] = { "X25519MLKEM768", "X25519", "P-256", "P-384" };

#define SUITES_1_2 \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES_1_3 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

enum { GROUPS_MAX = 64, SECURITY_LEVEL = 2 /* keys of 112 bits: RSA 2048, P-224 */ };

struct credentials {
    SSL_CTX *context;
    size_t first, count; /* its part of `identities` */
};

struct site {
    const struct credentials *credentials;
    int lowest; /* TLS1_2_VERSION or TLS1_3_VERSION */
    /* A session is resumed only where this is the same. It depends on the name of the site and its
     * certificates, so that a reload changes it no more than needed. */
    unsigned char id[32];
};

struct tls_server {
    struct site *sites;
    size_t site_count;
    const struct site *fallback; /* for unknown names, and without a name */
    struct credentials *credentials;
    size_t credentials_count;
    struct tls_identity **identities;
    size_t identity_count;
    struct hosts hosts;
    struct hosts_slot *slots;
    char *names;                       /* the memory of the hosts' names */
    bool http2;                        /* ALPN offers it */
    const struct tls_tickets *tickets; /* NULL: no resumption */
    EVP_CIPHER *ticket_cipher;         /* fetched once: each fetch takes OpenSSL's locks */
    char groups[GROUPS_MAX];           /* of wanted_groups, those that this OpenSSL has */
};

static bool refuse_for_memory(char why[TLS_WHY_MAX])
{
    return tls_identity_refuse_for_memory(why, "preparing TLS");
}

/* ---- the site of a connection ---- */

static int site_place = -1; /* in the data of an SSL; absent: the fallback */

static void reserve_site_place(void)
{
    site_place = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static struct tls_server *server_of(const SSL *ssl)
{
    return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

static const struct site *site_of(const SSL *ssl)
{
    const struct site *site = SSL_get_ex_data(ssl, site_place);
    return site ? site : server_of(ssl)->fallback;
}

static bool switch_site(SSL *ssl, const struct site *site)
{
    SSL_CTX *context = site->credentials->context;
    return SSL_set_SSL_CTX(ssl, context) == context &&
           SSL_set_session_id_context(ssl, site->id, sizeof(site->id)) &&
           SSL_set_min_proto_version(ssl, site->lowest) &&
           SSL_set_ex_data(ssl, site_place, (void *)(uintptr_t)site);
}

/* The first name of the extension (RFC 6066 section 3); empty if there is none. OpenSSL refuses a
 * malformed extension later. */
static struct span server_name(SSL *ssl)
{
    const unsigned char *at;
    size_t len;
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &at, &len) || len < 5 ||
        at[2] != TLSEXT_NAMETYPE_host_name)
        return SPAN("");
    size_t name_len = (size_t)at[3] << 8 | at[4];
    return span_first(span_of((const char *)at + 5, len - 5), name_len);
}

/* OpenSSL calls it before it chooses the version and looks for a session, so both follow the site.
 * Its servername callback comes too late for that. */
static int choose_site(SSL *ssl, int *alert, void *argument)
{
    const struct tls_server *server = argument;
    const struct hosts_slot *slot = hosts_find(&server->hosts, server_name(ssl));
    const struct site *site = slot ? slot->value : server->fallback;
    if (site == site_of(ssl) || switch_site(ssl, site))
        return SSL_CLIENT_HELLO_SUCCESS;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_CLIENT_HELLO_ERROR;
}

/* A server that has used the name acknowledges it (RFC 6066 section 3). */
static int acknowledge_name(SSL *ssl, int *alert, void *argument)
{
    (void)alert, (void)argument;
    return SSL_get_ex_data(ssl, site_place) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

/* A client that offers only other protocols gets the alert of RFC 7301 section 3.2. */
static int choose_protocol(SSL *ssl, const unsigned char **ret_at, unsigned char *ret_len,
                           const unsigned char *theirs, unsigned their_len, void *argument)
{
    (void)ssl;
    const struct tls_server *server = argument;
    struct span ours = server->http2 ? SPAN(HTTP_2 HTTP_1_1) : SPAN(HTTP_1_1);
    unsigned char *at;
    if (SSL_select_next_proto(&at, ret_len, (const unsigned char *)ours.at, (unsigned)ours.len,
                              theirs, their_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_at = at;
    return SSL_TLSEXT_ERR_OK;
}

/* ---- tickets ---- */

static bool seal_with(const struct tls_server *server, const struct tls_tickets_key *key,
                      unsigned char iv[], EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seals)
{
    char digest[] = "SHA256";
    const OSSL_PARAM digest_only[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                                        digest, 0),
                                       OSSL_PARAM_construct_end() };
    return EVP_CipherInit_ex2(cipher, server->ticket_cipher, key->cipher, iv, seals, NULL) &&
           EVP_MAC_init(mac, key->mac, sizeof(key->mac), digest_only);
}

/* Returns what SSL_CTX_set_tlsext_ticket_key_evp_cb(3) defines: -1: the connection fails; 0: a full
 * handshake; 1: the session continues; 2: the client also gets a new ticket. */
static int use_ticket_key(SSL *ssl, unsigned char name[16], unsigned char *iv,
                          EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seals)
{
    const struct tls_server *server = server_of(ssl);
    struct tls_tickets_key key;
    int result = 1;
    if (seals) {
        if (!tls_tickets_current(server->tickets, &key) ||
            RAND_bytes(iv, EVP_CIPHER_get_iv_length(server->ticket_cipher)) != 1)
            return -1;
        memcpy(name, key.name, sizeof(key.name));
    } else {
        enum tls_tickets_found found = tls_tickets_find(server->tickets, name, &key);
        if (found == TLS_TICKETS_UNKNOWN)
            return 0;
        /* A client uses a ticket of TLS 1.3 once (RFC 8446 appendix C.4), so it gets another. */
        if (found == TLS_TICKETS_PREVIOUS || SSL_version(ssl) == TLS1_3_VERSION)
            result = 2;
    }
    if (!seal_with(server, &key, iv, cipher, mac, seals))
        result = -1;
    OPENSSL_cleanse(&key, sizeof(key));
    return result;
}

static bool prepare_tickets(const struct tls_server *server, SSL_CTX *context)
{
    if (!server->tickets) {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        return SSL_CTX_set_num_tickets(context, 0);
    }
    SSL_CTX_set_timeout(context, TLS_TICKETS_LIFE_S);
    return SSL_CTX_set_num_tickets(context, 1) &&
           SSL_CTX_set_tlsext_ticket_key_evp_cb(context, use_ticket_key);
}

/* ---- contexts ---- */

/* OpenSSL refuses a list with one unknown name, so each name is tried alone. */
static bool find_groups(struct tls_server *server, SSL_CTX *context)
{
    struct buf list = buf_over(server->groups, sizeof(server->groups) - 1);
    for (size_t i = 0; i < sizeof(wanted_groups) / sizeof(wanted_groups[0]); i++) {
        if (!SSL_CTX_set1_groups_list(context, (char *)(uintptr_t)wanted_groups[i])) {
            if (ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE)
                return false;
            continue;
        }
        if (list.len > 0)
            buf_add_char(&list, ':');
        buf_add(&list, span_text(wanted_groups[i]));
    }
    return list.len > 0;
}

static bool apply_policy(struct tls_server *server, SSL_CTX *context)
{
    if (!server->groups[0] && !find_groups(server, context))
        return false;
    if (SSL_CTX_get_security_level(context) < SECURITY_LEVEL)
        SSL_CTX_set_security_level(context, SECURITY_LEVEL);
    return SSL_CTX_set_cipher_list(context, SUITES_1_2) &&
           SSL_CTX_set_ciphersuites(context, SUITES_1_3) &&
           SSL_CTX_set1_groups_list(context, server->groups) &&
           SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) &&
           SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}

/* Early data can be replayed, and stays off. Without NO_AUTO_CHAIN, OpenSSL would search the
 * system's certificates for issuers. */
static SSL_CTX *make_context(struct tls_server *server)
{
    tls_records_prepare();
    SSL_CTX *context = SSL_CTX_new_ex(NULL, tls_schedule_properties(), TLS_server_method());
    if (!context)
        return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, server);
    if (SSL_CTX_set_app_data(context, server) && SSL_CTX_set_max_early_data(context, 0) &&
        apply_policy(server, context) && prepare_tickets(server, context))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static bool use_identity(SSL_CTX *context, const struct tls_identity *identity, const char *site,
                         char why[TLS_WHY_MAX])
{
    if (SSL_CTX_use_cert_and_key(context, identity->leaf, identity->key, identity->chain, 0) == 1)
        return true;
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
        return refuse_for_memory(why);
    if (ERR_GET_REASON(error) == SSL_R_NOT_REPLACING_CERTIFICATE)
        return tls_identity_refuse(
            why,
            "site %s has two certificates with keys of the same kind, and %s is the "
            "second. Keep one of each kind (ECDSA, RSA).",
            site, identity->file);
    return tls_identity_refuse(
        why,
        "the certificate %s cannot be used (%s). Have one issued for a key of ECDSA "
        "P-256, or of RSA with 2048 bits or more.",
        identity->file, reason ? reason : "unknown reason");
}

static bool is_same_pairs(const struct tls_server_site *a, const struct tls_server_site *b)
{
    if (a->pair_count != b->pair_count)
        return false;
    for (size_t i = 0; i < a->pair_count; i++)
        if (strcmp(a->pairs[i].certificate, b->pairs[i].certificate) != 0 ||
            strcmp(a->pairs[i].key, b->pairs[i].key) != 0)
            return false;
    return true;
}

/* The credentials of site number `index`: those of an earlier site, or new ones. */
static const struct credentials *find_credentials(struct tls_server *server,
                                                  const struct tls_server_plan *plan, size_t index,
                                                  char why[TLS_WHY_MAX])
{
    const struct tls_server_site *site = &plan->sites[index];
    if (index > 0 && site->pair_count == 0)
        return server->sites[0].credentials;
    for (size_t i = 0; i < index; i++)
        if (is_same_pairs(&plan->sites[i], site))
            return server->sites[i].credentials;

    struct credentials *made = &server->credentials[server->credentials_count];
    made->first = server->identity_count;
    made->context = make_context(server);
    if (!made->context) {
        (void)refuse_for_memory(why);
        return NULL;
    }
    server->credentials_count++;
    for (; made->count < site->pair_count; made->count++) {
        struct tls_identity *identity = tls_identity_new(&site->pairs[made->count], why);
        if (!identity)
            return NULL;
        server->identities[server->identity_count++] = identity;
        if (!use_identity(made->context, identity, site->name, why))
            return NULL;
    }
    return made;
}

static bool make_id(const struct tls_server *server, struct site *site, const char *name)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool made = digest && EVP_DigestInit_ex2(digest, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(digest, name, strlen(name) + 1);
    for (size_t i = 0; made && i < site->credentials->count; i++)
        made = EVP_DigestUpdate(digest,
                                server->identities[site->credentials->first + i]->fingerprint,
                                TLS_FINGERPRINT_MAX);
    made = made && EVP_DigestFinal_ex(digest, site->id, NULL);
    EVP_MD_CTX_free(digest);
    return made;
}

/* ---- building ---- */

static bool index_hosts(struct tls_server *server, const struct tls_server_plan *plan)
{
    size_t names = 0, bytes = 1;
    for (size_t i = 0; i < plan->site_count; i++)
        for (const char *const *host = plan->sites[i].hosts; host && *host; host++) {
            names++;
            bytes += strlen(*host) + 1;
        }
    server->slots = calloc(hosts_slots(names), sizeof(server->slots[0]));
    server->names = malloc(bytes);
    if (!server->slots || !server->names)
        return false;
    hosts_init(&server->hosts, server->slots, names);
    char *at = server->names;
    for (size_t i = 0; i < plan->site_count; i++) {
        const char *const *host = plan->sites[i].hosts;
        if (!server->fallback && (!host || !*host))
            server->fallback = &server->sites[i];
        for (; host && *host; host++) {
            size_t size = strlen(*host) + 1;
            memcpy(at, *host, size);
            hosts_add(&server->hosts, at, &server->sites[i]);
            at += size;
        }
    }
    if (!server->fallback)
        server->fallback = &server->sites[0];
    return true;
}

static bool allocate_sites(struct tls_server *server, const struct tls_server_plan *plan)
{
    size_t pairs = 0;
    for (size_t i = 0; i < plan->site_count; i++)
        pairs += plan->sites[i].pair_count;
    server->site_count = plan->site_count;
    server->sites = calloc(plan->site_count, sizeof(server->sites[0]));
    server->credentials = calloc(plan->site_count, sizeof(server->credentials[0]));
    server->identities = calloc(pairs + 1, sizeof(server->identities[0]));
    return server->sites && server->credentials && server->identities && index_hosts(server, plan);
}

/* A new connection has the context of the fallback. */
static bool finish_fallback(struct tls_server *server)
{
    const struct site *site = server->fallback;
    SSL_CTX *context = site->credentials->context;
    if (server->site_count > 1) {
        SSL_CTX_set_client_hello_cb(context, choose_site, server);
        SSL_CTX_set_tlsext_servername_callback(context, acknowledge_name);
    }
    return SSL_CTX_set_session_id_context(context, site->id, sizeof(site->id)) &&
           SSL_CTX_set_min_proto_version(context, site->lowest);
}

static bool build_server(struct tls_server *server, const struct tls_server_plan *plan,
                         char why[TLS_WHY_MAX])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, reserve_site_place);
    if (site_place < 0 || !allocate_sites(server, plan))
        return refuse_for_memory(why);
    if (plan->sites[0].pair_count == 0)
        return tls_identity_refuse(why,
                                   "site %s has no certificate. Set tls-certificate and tls-key.",
                                   plan->sites[0].name);
    server->tickets = plan->tickets;
    server->http2 = plan->http2;
    server->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    if (!server->ticket_cipher)
        return refuse_for_memory(why);
    for (size_t i = 0; i < plan->site_count; i++) {
        struct site *site = &server->sites[i];
        site->credentials = find_credentials(server, plan, i, why);
        if (!site->credentials)
            return false;
        bool modern = plan->policy == TLS_MODERN || plan->sites[i].lowest == TLS_1_3;
        site->lowest = modern ? TLS1_3_VERSION : TLS1_2_VERSION;
        if (!make_id(server, site, plan->sites[i].name))
            return refuse_for_memory(why);
    }
    return finish_fallback(server) || refuse_for_memory(why);
}

struct tls_server *tls_server_new(const struct tls_server_plan *plan, char why[TLS_WHY_MAX])
{
    CHECK(plan->site_count > 0);
    ERR_clear_error();
    struct tls_server *server = calloc(1, sizeof(*server));
    bool built = server ? build_server(server, plan, why) : refuse_for_memory(why);
    ERR_clear_error();
    if (built)
        return server;
    tls_server_free(server);
    return NULL;
}

void tls_server_free(struct tls_server *server)
{
    if (!server)
        return;
    for (size_t i = 0; i < server->credentials_count; i++)
        SSL_CTX_free(server->credentials[i].context);
    for (size_t i = 0; i < server->identity_count; i++)
        tls_identity_free(server->identities[i]);
    EVP_CIPHER_free(server->ticket_cipher);
    free(server->sites);
    free(server->credentials);
    free(server->identities);
    free(server->slots);
    free(server->names);
    free(server);
}

const struct tls_identity *tls_server_identity(const struct tls_server *server, size_t index)
{
    return index < server->identity_count ? server->identities[index] : NULL;
}

/* ---- connections ---- */

SSL *tls_server_accept(struct tls_server *server)
{
    SSL *ssl = SSL_new(server->fallback->credentials->context);
    if (ssl)
        SSL_set_accept_state(ssl);
    else
        ERR_clear_error();
    return ssl;
}

size_t tls_server_site_of(const SSL *ssl)
{
    return (size_t)(site_of(ssl) - server_of(ssl)->sites);
}

bool tls_server_covers(const struct tls_server *server, size_t site, struct span host)
{
    const struct credentials *credentials = server->sites[site].credentials;
    for (size_t i = 0; i < credentials->count; i++)
        if (!tls_identity_covers(server->identities[credentials->first + i], host))
            return false;
    return true;
}
