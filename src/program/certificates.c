/* SPDX-License-Identifier: MIT */
#include "program/certificates.h"

#include "base/calendar.h"
#include "os/clock.h"
#include "server/tls.h"
#include "tls/identity.h"
#include "view/health.h"

/* One certificate of the configuration, and where it is named. */
struct place {
    const struct config_site *site;
    struct tls_pair pair;
    char origin[CONFIG_ORIGIN_MAX];
};

static void print_warning(const struct place *place, const char *text, unsigned *warnings)
{
    fprintf(stderr, "%s: warning: %s\n", place->origin, text);
    ++*warnings;
}

static void check_end(const struct place *place, const struct tls_identity *identity, int64_t now_s,
                      unsigned *warnings)
{
    char text[TLS_WHY_MAX], end[CALENDAR_LEN + 1] = "";
    int64_t left_s = identity->ends_s - now_s;
    calendar_format(end, identity->ends_s);
    if (left_s >= 0 && left_s < VIEW_CERTIFICATE_SOON_S) {
        (void)snprintf(text, sizeof(text), "the certificate %s ends in %.1f days. Renew it.",
                       place->pair.certificate, (double)left_s / VIEW_DAY_S);
        print_warning(place, text, warnings);
    }
    printf("site %s: %s matches its key and %s %.10s, for", place->site->name,
           place->pair.certificate, left_s >= 0 ? "is valid until" : "ended at", end);
    for (char *const *name = identity->names; *name; name++)
        printf("%s %s", name == identity->names ? "" : ",", *name);
    printf("\n");
}

static void check_place(const struct place *place, unsigned *errors, unsigned *warnings)
{
    char why[TLS_WHY_MAX];
    int64_t now_s = os_clock_wall_s();
    struct tls_identity *identity = tls_identity_new(&place->pair, why);
    if (!identity) {
        fprintf(stderr, "%s: error: %s\n", place->origin, why);
        ++*errors;
        return;
    }
    for (unsigned i = 0; server_tls_warning(place->site, identity, i, now_s, why); i++)
        print_warning(place, why, warnings);
    check_end(place, identity, now_s, warnings);
    tls_identity_free(identity);
}

/* Hosts of a site without a certificate that the certificate of another site does not cover. */
static void check_borrower(const struct config_store *store, unsigned s, const struct place *lent,
                           const struct tls_identity *identity, unsigned *warnings)
{
    char text[TLS_WHY_MAX];
    struct place place = { .site = &config_read_result(store)->sites[s] };
    for (unsigned i = 0; place.site->hosts[i]; i++) {
        if (tls_identity_covers(identity, span_text(place.site->hosts[i])))
            continue;
        (void)snprintf(text, sizeof(text),
                       "site %s has no tls-certificate, and %s of site %s does not cover the host "
                       "%s. Clients refuse it over https.",
                       place.site->name, lent->pair.certificate, lent->site->name,
                       place.site->hosts[i]);
        config_read_site_origin(store, s, SETTING_hosts, i, place.origin);
        print_warning(&place, text, warnings);
    }
}

static void check_borrowers(const struct config_store *store, unsigned *warnings)
{
    const struct config *config = config_read_result(store);
    struct place lent = { .site = server_tls_lender(config) };
    for (unsigned i = 0; lent.site && lent.site->tls_certificates[i]; i++) {
        char why[TLS_WHY_MAX];
        lent.pair = server_tls_pair(lent.site, i);
        struct tls_identity *identity = tls_identity_new(&lent.pair, why);
        for (unsigned s = 0; identity && s < config->site_count; s++)
            if (!config->sites[s].tls_certificates[0])
                check_borrower(store, s, &lent, identity, warnings);
        tls_identity_free(identity);
    }
}

void program_certificates_check(const struct config_store *store, unsigned *errors,
                                unsigned *warnings)
{
    const struct config *config = config_read_result(store);
    for (unsigned s = 0; s < config->site_count; s++) {
        const struct config_site *site = &config->sites[s];
        for (unsigned i = 0; site->tls_certificates[i]; i++) {
            struct place place = { .site = site, .pair = server_tls_pair(site, i) };
            config_read_site_origin(store, s, SETTING_tls_certificates, i, place.origin);
            check_place(&place, errors, warnings);
        }
    }
    check_borrowers(store, warnings);
}
