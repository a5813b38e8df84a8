/* SPDX-License-Identifier: MIT
 *
 * The TLS of a configuration: which processes get certificates, how the files are followed, and
 * what the statistics learn about the certificates.
 */
#include "server/tls.h"

#include "unit/tls/fixture.h"

#include <errno.h>

#define SECOND UINT64_C(1000000000)

/* No process looks at a disk here: what the kernel has just written is in memory. */
static struct server_look look = { .errand = { .fd = -1 } };

static const char *const none[] = { NULL };
static const char *const https[] = { "127.0.0.1:80", "https://127.0.0.1:8443", NULL };
static const char *const http[] = { "127.0.0.1:80", NULL };

struct fixture {
    struct tree tree;
    EVP_PKEY *ec, *rsa;
    struct tls_tickets tickets;
    struct server_tls tls;
    struct config_site sites[2];
    struct config config;
    const char *certificates[2][3], *keys[2][3];
};

/* Adds a pair of files to a site. Its certificate ends in `days`. */
static void add_pair(struct fixture *f, unsigned site, const char *name, EVP_PKEY *key,
                     const char *names, int64_t days)
{
    char path[64];
    unsigned at = 0;
    while (f->certificates[site][at])
        at++;
    X509 *certificate = issue_certificate(&(struct issue){
        .key = key, .subject = name, .names = names, .ends_s = time(NULL) + days * DAY_S });
    (void)snprintf(path, sizeof(path), "%s.crt", name);
    write_chain(&f->tree, path, certificate, NULL, NULL);
    f->certificates[site][at] = strdup(tree_absolute(&f->tree, path));
    (void)snprintf(path, sizeof(path), "%s.key", name);
    write_key(&f->tree, path, key);
    f->keys[site][at] = strdup(tree_absolute(&f->tree, path));
    X509_free(certificate);
}

static int set_up(void **state)
{
    static EVP_PKEY *ec, *rsa;
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    tree_make(&f->tree);
    ec = ec ? ec : make_ec_key();
    rsa = rsa ? rsa : EVP_RSA_gen(2048);
    f->ec = ec;
    f->rsa = rsa;
    f->tickets = (struct tls_tickets){ .fd = -1 };
    for (unsigned i = 0; i < 2; i++)
        f->sites[i] = (struct config_site){
            .name = i == 0 ? "one" : "two",
            .hosts = none,
            .tls_min = "1.2",
            .tls_certificates = f->certificates[i],
            .tls_keys = f->keys[i],
        };
    f->config = (struct config){ .listen = https,
                                 .stats_listen = none,
                                 .tls_policy = "intermediate",
                                 .sites = f->sites,
                                 .site_count = 1 };
    add_pair(f, 0, "a", f->ec, "DNS:a.test", 100);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    server_tls_close(&f->tls);
    tls_tickets_close(&f->tickets);
    for (unsigned i = 0; i < 6; i++) {
        free((char *)f->certificates[i / 3][i % 3]);
        free((char *)f->keys[i / 3][i % 3]);
    }
    tree_remove(&f->tree);
    free(f);
    return 0;
}

static void open_tls(struct fixture *f)
{
    char why[TLS_WHY_MAX] = "";
    if (server_tls_open(&f->tls, &f->config, &f->tickets, why) != 0)
        fail_msg("%s", why);
    assert_true(f->tls.complete);
}

/* ---- which processes get certificates ---- */

static void an_address_decides_which_process_gets_certificates(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *const *listen, *const *stats_listen;
        bool sites, page;
    } cases[] = { { https, none, true, false },
                  { http, https, false, true },
                  { https, https, true, true },
                  { http, http, false, false } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->config.listen = cases[i].listen;
        f->config.stats_listen = cases[i].stats_listen;
        bool wanted = cases[i].sites || cases[i].page;
        char why[TLS_WHY_MAX];
        assert_int_equal(server_tls_is_wanted(&f->config), wanted);
        assert_int_equal(server_tls_open(&f->tls, &f->config, &f->tickets, why), 0);
        assert_int_equal(f->tls.server != NULL, cases[i].sites);
        assert_int_equal(f->tls.page != NULL, cases[i].page);
        assert_int_equal(f->tickets.memory != NULL, cases[i].sites);
        assert_int_equal(f->tls.watch.count, wanted ? 2 : 0);
        assert_int_equal(server_tls_port(&f->config), cases[i].sites ? 8443 : 0);
        server_tls_close(&f->tls);
        tls_tickets_close(&f->tickets);
    }
}

/* So it has no keys of tickets, with which it could open sessions of the sites. */
static void only_sites_give_tickets(void **state)
{
    struct fixture *f = *state;
    f->config.stats_listen = https;
    open_tls(f);
    struct tls_server *servers[] = { f->tls.server, f->tls.page };
    for (unsigned i = 0; i < 2; i++) {
        struct talk *talk = talk_to(servers[i], &(struct client){ .highest = TLS1_2_VERSION });
        assert_true(talk->connected);
        SSL_SESSION *session = SSL_get_session(talk->client);
        assert_int_equal(SSL_SESSION_has_ticket(session), i == 0);
        end_talk(talk);
    }
}

static void a_certificate_without_a_key_has_it_in_its_file(void **state)
{
    struct fixture *f = *state;
    struct tls_pair pair = server_tls_pair(&f->sites[0], 0);
    assert_string_equal(pair.certificate, f->certificates[0][0]);
    assert_string_equal(pair.key, f->keys[0][0]);
    f->sites[0].tls_keys = none;
    pair = server_tls_pair(&f->sites[0], 0);
    assert_string_equal(pair.key, f->certificates[0][0]);
}

static void a_broken_key_is_refused_with_the_name_of_its_file(void **state)
{
    struct fixture *f = *state;
    char why[TLS_WHY_MAX] = "";
    tree_write(&f->tree, "a.key", "-----BEGIN PRIVATE KEY-----\n");
    f->config.stats_listen = https;
    assert_int_equal(server_tls_open(&f->tls, &f->config, &f->tickets, why), -EINVAL);
    assert_non_null(strstr(why, f->keys[0][0]));
    assert_false(f->tls.complete);
    assert_int_equal(f->tls.watch.count, 2);
}

/* ---- what the statistics learn ---- */

static void the_certificate_that_ends_first_is_noted_first(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *key;
        int64_t days;
    } expected[] = { { "b.test", "ECDSA", 20 },
                     { "a.test", "RSA", 50 },
                     { "a.test", "ECDSA", 80 } };
    add_pair(f, 0, "r", f->rsa, "DNS:a.test,DNS:www.a.test", 50);
    add_pair(f, 1, "b", f->ec, "DNS:b.test", 20);
    add_pair(f, 1, "again", f->rsa, "DNS:a.test", 80); /* the same name and kind of key */
    f->config.site_count = 2;
    f->config.stats_listen = https; /* with the same certificates */
    X509 *sooner = issue_certificate(&(struct issue){
        .key = f->ec, .subject = "a", .names = "DNS:a.test", .ends_s = time(NULL) + 80 * DAY_S });
    write_chain(&f->tree, "a.crt", sooner, NULL, NULL);
    X509_free(sooner);
    open_tls(f);
    assert_int_equal(f->tls.certificate_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        const struct stats_certificate *one = &f->tls.certificates[i];
        int64_t hours = (one->ends_s - time(NULL)) / 3600;
        assert_string_equal(one->name, expected[i].name);
        assert_string_equal(one->key, expected[i].key);
        assert_in_range(hours, expected[i].days * 24 - 2, expected[i].days * 24);
    }
}

static void a_certificate_without_names_is_noted(void **state)
{
    struct fixture *f = *state;
    X509 *bare = issue_certificate(&(struct issue){ .key = f->ec, .subject = "a" });
    write_chain(&f->tree, "a.crt", bare, NULL, NULL);
    X509_free(bare);
    open_tls(f);
    assert_int_equal(f->tls.certificate_count, 1);
    assert_string_equal(f->tls.certificates[0].name, "(no name)");
}

/* ---- changes ---- */

static void a_change_counts_when_it_has_settled(void **state)
{
    struct fixture *f = *state;
    open_tls(f);
    uint64_t due_ns = f->tls.watch.due_ns;
    tree_write(&f->tree, "a.key", "another");
    assert_null(server_watch_changed(&f->tls.watch, &look, due_ns - 1));
    assert_null(
        server_watch_changed(&f->tls.watch, &look, due_ns)); /* the first look sees a change */
    assert_int_equal(f->tls.watch.due_ns, due_ns + SECOND);
    assert_null(server_watch_changed(&f->tls.watch, &look, due_ns));
    tree_write(&f->tree, "a.crt", "another, too");
    assert_null(
        server_watch_changed(&f->tls.watch, &look, due_ns + SECOND)); /* and a further one */
    const char *changed = server_watch_changed(&f->tls.watch, &look, due_ns + 2 * SECOND);
    assert_non_null(changed);
    assert_string_equal(changed, f->keys[0][0]);
    assert_int_equal(f->tls.watch.due_ns, due_ns + 7 * SECOND);
}

static void an_absent_file_changes_nothing(void **state)
{
    struct fixture *f = *state;
    open_tls(f);
    tree_remove_file(&f->tree, "a.key");
    for (unsigned i = 0; i < 3; i++)
        assert_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
}

static void refused_files_are_tried_again_after_their_next_change(void **state)
{
    struct fixture *f = *state;
    struct server_tls refused;
    char why[TLS_WHY_MAX];
    open_tls(f);
    tree_write(&f->tree, "a.key", "broken");
    assert_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
    assert_non_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
    assert_int_equal(server_tls_open(&refused, &f->config, &f->tickets, why), -EINVAL);
    server_watch_postpone(&f->tls.watch, &refused.watch);
    server_tls_close(&refused);
    for (unsigned i = 0; i < 3; i++)
        assert_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
    tree_write(&f->tree, "a.key", "broken otherwise");
    assert_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
    assert_non_null(server_watch_changed(&f->tls.watch, &look, f->tls.watch.due_ns));
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(an_address_decides_which_process_gets_certificates),
        WITH_FILES(only_sites_give_tickets),
        WITH_FILES(a_certificate_without_a_key_has_it_in_its_file),
        WITH_FILES(a_broken_key_is_refused_with_the_name_of_its_file),
        WITH_FILES(the_certificate_that_ends_first_is_noted_first),
        WITH_FILES(a_certificate_without_names_is_noted),
        WITH_FILES(a_change_counts_when_it_has_settled),
        WITH_FILES(an_absent_file_changes_nothing),
        WITH_FILES(refused_files_are_tried_again_after_their_next_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
