/* SPDX-License-Identifier: MIT */
#include "server/tls.h"

#include "base/num.h"
#include "base/span.h"
#include "config/address.h"
#include "log/error.h"
#include "os/clock.h"
#include "tls/wipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first address that begins with https://. NULL: none. */
static const char *first_address(const char *const *addresses)
{
    while (*addresses && !config_address_is_tls(span_text(*addresses)))
        addresses++;
    return *addresses;
}

bool server_tls_is_wanted(const struct config *config)
{
    return first_address(config->listen) || first_address(config->stats_listen);
}

uint16_t server_tls_port(const struct config *config)
{
    const char *address = first_address(config->listen);
    const char *colon = address ? strrchr(address, ':') : NULL;
    uint64_t port = 0;
    return colon && num_parse_u64(span_text(colon + 1), &port) ? (uint16_t)port : 0;
}

struct tls_pair server_tls_pair(const struct config_site *site, size_t index)
{
    const char *certificate = site->tls_certificates[index];
    return (struct tls_pair){ certificate,
                              site->tls_keys[0] ? site->tls_keys[index] : certificate };
}

/* ---- the plan ---- */

struct site_pairs {
    struct tls_pair *each;
    size_t count;
};

static size_t count_texts(const char *const *texts)
{
    size_t count = 0;
    while (texts[count])
        count++;
    return count;
}

/* False: out of memory. */
static bool pair_files(const struct config_site *site, struct site_pairs *ret_pairs)
{
    size_t count = count_texts(site->tls_certificates);
    ret_pairs->each = calloc(count + 1, sizeof(*ret_pairs->each));
    if (!ret_pairs->each)
        return false;
    ret_pairs->count = count;
    for (size_t i = 0; i < count; i++)
        ret_pairs->each[i] = server_tls_pair(site, i);
    return true;
}

static const struct config_site *first_with_certificate(const struct config *config)
{
    for (size_t i = 0; i < config->site_count; i++)
        if (config->sites[i].tls_certificates[0])
            return &config->sites[i];
    return NULL;
}

const struct config_site *server_tls_lender(const struct config *config)
{
    return first_address(config->listen) ? first_with_certificate(config) : NULL;
}

/* The certificate for this machine. It is kept in a folder of the user who starts the server. */
static int find_local(struct server_tls *tls, char why[TLS_WHY_MAX])
{
    if (tls->local)
        return 0;
    char folder[TLS_SELFSIGNED_PATH_MAX];
    struct tls_selfsigned_names names;
    int rc = tls_selfsigned_folder(folder);
    if (rc < 0) {
        snprintf(why, TLS_WHY_MAX,
                 "cannot make a certificate for this machine (%s). Set HOME, or use the settings "
                 "tls-certificate and tls-key.",
                 rc == -ENOENT ? "this user has no home folder" : strerror(-rc));
        return rc;
    }
    tls->local = calloc(1, sizeof(*tls->local));
    if (!tls->local)
        return -ENOMEM;
    tls_selfsigned_local(&names);
    return tls_selfsigned_get(folder, names.list, os_clock_wall_s(), tls->local, why) ? 0 : -EIO;
}

/* The files of the first site, which sites without files use too. */
static int pair_first(struct server_tls *tls, const struct config *config,
                      struct site_pairs *ret_pairs, char why[TLS_WHY_MAX])
{
    const struct config_site *site = first_with_certificate(config);
    if (site)
        return pair_files(site, ret_pairs) ? 0 : -ENOMEM;
    int rc = find_local(tls, why);
    if (rc < 0)
        return rc;
    ret_pairs->each = calloc(1, sizeof(*ret_pairs->each));
    if (!ret_pairs->each)
        return -ENOMEM;
    ret_pairs->each[0] = (struct tls_pair){ tls->local->file, tls->local->file };
    ret_pairs->count = 1;
    return 0;
}

static int plan_sites(struct server_tls *tls, const struct config *config,
                      struct tls_server_site *sites, struct site_pairs *pairs,
                      char why[TLS_WHY_MAX])
{
    for (size_t i = 0; i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];
        bool lends = i == 0 && !site->tls_certificates[0];
        int rc = 0;
        if (lends)
            rc = pair_first(tls, config, &pairs[i], why);
        else if (!pair_files(site, &pairs[i]))
            rc = -ENOMEM;
        if (rc < 0)
            return rc;
        sites[i] = (struct tls_server_site){
            .name = site->name,
            .hosts = site->hosts,
            .pairs = pairs[i].each,
            .pair_count = pairs[i].count,
            .lowest = strcmp(site->tls_min, "1.3") == 0 ? TLS_1_3 : TLS_1_2,
        };
    }
    return 0;
}

static bool is_same_certificate(const struct stats_certificate *a,
                                const struct stats_certificate *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->key, b->key) == 0;
}

/* Notes when a certificate ends. Of several with the same name and kind of key, and of more than
 * the statistics remember, those that end first are noted. */
static void note_end(struct server_tls *tls, const struct tls_identity *identity)
{
    struct stats_certificate one = { .ends_s = identity->ends_s };
    const char *name = identity->names[0];
    (void)snprintf(one.name, sizeof(one.name), "%s", name ? name : "(no name)");
    (void)snprintf(one.key, sizeof(one.key), "%s", tls_identity_key(identity));
    size_t at = 0, last = tls->certificate_count;
    while (at < last && !is_same_certificate(&tls->certificates[at], &one))
        at++;
    if (at == STATS_CERTIFICATES_MAX)
        at--;
    if (at < last && tls->certificates[at].ends_s <= one.ends_s)
        return;
    tls->certificate_count += at == last;
    for (; at > 0 && tls->certificates[at - 1].ends_s > one.ends_s; at--)
        tls->certificates[at] = tls->certificates[at - 1];
    tls->certificates[at] = one;
}

/* The statistics page has no keys of tickets, and speaks HTTP/1.1 only. */
static int make_server(struct server_tls *tls, const struct config *config, bool for_page,
                       struct tls_server **ret_server, char why[TLS_WHY_MAX])
{
    struct tls_server_site *sites = calloc(config->site_count, sizeof(*sites));
    struct site_pairs *pairs = calloc(config->site_count, sizeof(*pairs));
    int rc = sites && pairs ? plan_sites(tls, config, sites, pairs, why) : -ENOMEM;
    if (rc == 0) {
        struct tls_server_plan plan = {
            .sites = sites,
            .site_count = config->site_count,
            .policy = strcmp(config->tls_policy, "modern") == 0 ? TLS_MODERN : TLS_INTERMEDIATE,
            .http2 = config->http2 && !for_page,
            .tickets = for_page ? NULL : tls->tickets,
        };
        *ret_server = tls_server_new(&plan, why);
        rc = *ret_server ? 0 : -EINVAL;
    }
    const struct tls_identity *identity;
    for (size_t i = 0; rc == 0 && (identity = tls_server_identity(*ret_server, i)); i++)
        note_end(tls, identity);
    for (size_t i = 0; pairs && i < config->site_count; i++)
        free(pairs[i].each);
    free(pairs);
    free(sites);
    return rc;
}

/* ---- certificates that clients may refuse ---- */

bool server_tls_warning(const struct config_site *site, const struct tls_identity *identity,
                        unsigned index, int64_t now_s, char out[TLS_WHY_MAX])
{
    unsigned at = 0;
    while (tls_identity_warning(identity, at, now_s, out))
        if (at++ == index)
            return true;
    for (const char *const *host = site->hosts; *host; host++) {
        if (tls_identity_covers(identity, span_text(*host)) || at++ != index)
            continue;
        (void)snprintf(
            out, TLS_WHY_MAX,
            "the certificate %s does not cover the host %s of site %s. Clients refuse it "
            "there. Have one issued for all hosts of the site.",
            identity->file, *host, site->name);
        return true;
    }
    return false;
}

static const struct tls_identity *find_identity(const struct tls_server *server, const char *file)
{
    const struct tls_identity *identity;
    for (size_t i = 0; (identity = tls_server_identity(server, i)) != NULL; i++)
        if (strcmp(identity->file, file) == 0)
            return identity;
    return NULL;
}

static void write_warnings(const struct tls_server *server, const struct config_site *site,
                           FILE *out)
{
    char why[TLS_WHY_MAX];
    const int64_t now_s = os_clock_wall_s();
    for (const char *const *file = site->tls_certificates; *file; file++) {
        const struct tls_identity *identity = find_identity(server, *file);
        for (unsigned i = 0; identity && server_tls_warning(site, identity, i, now_s, why); i++)
            fprintf(out, "%s\n", why);
    }
}

/* The process of the page takes its certificates before the sites are served. So the warnings are
 * kept as text. */
static int keep_warnings(struct server_tls *tls, const struct config *config)
{
    const struct tls_server *server = tls->server ? tls->server : tls->page;
    size_t len;
    FILE *out = open_memstream(&tls->warnings, &len);
    if (!out)
        return -errno;
    for (size_t i = 0; i < config->site_count; i++)
        write_warnings(server, &config->sites[i], out);
    return fclose(out) == 0 ? 0 : -errno;
}

void server_tls_warn(const struct server_tls *tls)
{
    struct span rest = tls->warnings ? span_text(tls->warnings) : SPAN("");
    while (rest.len > 0) {
        const struct span line = span_take(&rest, '\n');
        log_error(LOG_WARNING, "%.*s", (int)line.len, line.at);
    }
}

/* ---- the files ---- */

static int note_files(struct server_tls *tls, const char *const *paths)
{
    int rc = 0;
    for (; *paths && rc == 0; paths++)
        rc = server_watch_add(&tls->watch, *paths);
    return rc;
}

/* Notes what the paths stand for before the files are read. */
static int note_all(struct server_tls *tls, const struct config *config)
{
    int rc = 0;
    for (size_t i = 0; i < config->site_count && rc == 0; i++) {
        rc = note_files(tls, config->sites[i].tls_certificates);
        if (rc == 0)
            rc = note_files(tls, config->sites[i].tls_keys);
    }
    return rc;
}

/* ---- all ---- */

static int open_tickets(struct server_tls *tls, struct tls_tickets *tickets, char why[TLS_WHY_MAX])
{
    tls->tickets = tickets;
    int rc = tickets->memory ? 0 : tls_tickets_open(tickets, os_clock_now_ns());
    if (rc < 0)
        snprintf(why, TLS_WHY_MAX, "Cannot make the keys of session tickets (%s).", strerror(-rc));
    return rc;
}

int server_tls_open(struct server_tls *tls, const struct config *config,
                    struct tls_tickets *tickets, char why[TLS_WHY_MAX])
{
    *tls = (struct server_tls){ 0 };
    if (!server_tls_is_wanted(config))
        return 0;
    tls_wipe_prepare();
    bool has_sites = first_address(config->listen), has_page = first_address(config->stats_listen);
    int rc = has_sites ? open_tickets(tls, tickets, why) : 0;
    if (rc < 0)
        return rc;
    snprintf(why, TLS_WHY_MAX, "There is not enough memory for the certificates.");
    tls->certificates = calloc(STATS_CERTIFICATES_MAX, sizeof(*tls->certificates));
    rc = tls->certificates ? note_all(tls, config) : -ENOMEM;
    tls_wipe_begin();
    if (rc == 0 && has_sites)
        rc = make_server(tls, config, false, &tls->server, why);
    if (rc == 0 && has_page)
        rc = make_server(tls, config, true, &tls->page, why);
    tls_wipe_end();
    if (rc == 0 && keep_warnings(tls, config) < 0) {
        (void)tls_identity_refuse_for_memory(why, "checking the certificates");
        rc = -ENOMEM;
    }
    tls->complete = rc == 0;
    return rc;
}

void server_tls_close(struct server_tls *tls)
{
    tls_server_free(tls->server);
    tls_server_free(tls->page);
    free(tls->local);
    server_watch_close(&tls->watch);
    free(tls->certificates);
    free(tls->warnings);
    *tls = (struct server_tls){ 0 };
}
