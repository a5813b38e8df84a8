/* SPDX-License-Identifier: MIT
 *
 * Each allocation of OpenSSL fails once, while certificates are read, made and put into a server.
 * The call reports it or has its whole result, and nothing leaks (under AddressSanitizer).
 */
#include "fixture.h"
#include "tls/selfsigned.h"

static long countdown; /* the allocation that fails; 0: none */
static bool has_failed;

static bool fails_now(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    has_failed = true;
    return true;
}

static void *count_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails_now() ? NULL : malloc(size);
}

static void *count_realloc(void *at, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return fails_now() ? NULL : realloc(at, size);
}

static void count_free(void *at, const char *file, int line)
{
    (void)file, (void)line;
    free(at);
}

struct fixture {
    struct tree tree;
    struct tls_pair pair;
    char *folder;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    EVP_PKEY *key = make_ec_key();
    tree_make(&f->tree);
    write_pair(&f->tree, "a", key, "DNS:a.test,DNS:b.test,IP:::1");
    f->pair = pair_of(&f->tree, "a.crt", "a.key");
    f->folder = strdup(tree_absolute(&f->tree, "state/weir"));
    EVP_PKEY_free(key);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    free_pair(&f->pair);
    free(f->folder);
    tree_remove(&f->tree);
    return 0;
}

static bool read_identity(struct fixture *f, char why[TLS_WHY_MAX])
{
    struct tls_identity *identity = tls_identity_new(&f->pair, why);
    if (!identity)
        return false;
    assert_string_equal(identity->names[0], "a.test");
    assert_string_equal(identity->names[2], "::1");
    assert_null(identity->names[3]);
    assert_true(identity->self_signed);
    assert_int_equal(strlen(identity->fingerprint), 95);
    tls_identity_free(identity);
    return true;
}

static bool build_server(struct fixture *f, char why[TLS_WHY_MAX])
{
    static const char *const hosts[] = { "b.test", NULL };
    const struct tls_server_site sites[] = { { .name = "a", .pairs = &f->pair, .pair_count = 1 },
                                             { .name = "b", .hosts = hosts } };
    struct tls_server *server =
        tls_server_new(&(struct tls_server_plan){ .sites = sites, .site_count = 2 }, why);
    if (!server)
        return false;
    countdown = 0; /* the result is complete */
    struct talk *talk = talk_to(server, &(struct client){ .host = "b.test", .groups = "P-384" });
    /* OpenSSL leaves out a cipher in silence when memory is short, so it may refuse the client. */
    assert_int_equal(tls_server_site_of(talk->server), 1);
    end_talk(talk);
    tls_server_free(server);
    return true;
}

static bool accept_one(struct fixture *f, char why[TLS_WHY_MAX])
{
    long number = countdown;
    const struct tls_server_site site = { .name = "a", .pairs = &f->pair, .pair_count = 1 };
    countdown = 0;
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = &site, .site_count = 1 });
    countdown = number;
    SSL *ssl = tls_server_accept(server);
    bool accepted = ssl != NULL;
    countdown = 0;
    (void)snprintf(why, TLS_WHY_MAX, "NULL");
    if (accepted) /* OpenSSL 3.5 can succeed and leave an error behind */
        ERR_clear_error();
    SSL_free(ssl);
    tls_server_free(server);
    return accepted;
}

static bool make_certificate(struct fixture *f, char why[TLS_WHY_MAX])
{
    static const char *const names[] = { "localhost", "127.0.0.1", NULL };
    struct tls_selfsigned found;
    if (!tls_selfsigned_get(f->folder, names, time(NULL), &found, why))
        return false;
    countdown = 0;
    const struct tls_pair pair = { found.file, found.file };
    struct tls_identity *identity = tls_identity_new(&pair, why);
    assert_non_null(identity);
    assert_true(tls_identity_covers(identity, SPAN("127.0.0.1")));
    tls_identity_free(identity);
    tree_remove_file(&f->tree, "state/weir/self-signed.pem");
    return true;
}

/* Calls it until no allocation fails any more. Later ones are tried in steps, for the time. */
static void fail_each(struct fixture *f, bool (*call)(struct fixture *, char why[TLS_WHY_MAX]))
{
    char why[TLS_WHY_MAX];
    unsigned refused = 0;
    countdown = 0;
    assert_true(call(f, why)); /* OpenSSL keeps some memory from now on */
    has_failed = true;
    for (long number = 1; has_failed; number += 1 + number / 32) {
        why[0] = '\0';
        has_failed = false;
        countdown = number;
        bool done = call(f, why);
        countdown = 0;
        assert_int_equal(ERR_peek_error(), 0);
        if (done)
            continue;
        assert_true(has_failed);
        assert_int_not_equal(why[0], '\0');
        if (strstr(why, "belong"))
            fail_msg("allocation %ld: %s", number, why);
        refused++;
    }
    assert_true(refused > 0);
}

static void reads_a_whole_identity_or_none(void **state)
{
    fail_each(*state, read_identity);
}

static void builds_a_whole_server_or_none(void **state)
{
    fail_each(*state, build_server);
}

static void accepts_a_connection_or_reports_it(void **state)
{
    fail_each(*state, accept_one);
}

static void makes_a_whole_certificate_or_none(void **state)
{
    fail_each(*state, make_certificate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_whole_identity_or_none),
        cmocka_unit_test(builds_a_whole_server_or_none),
        cmocka_unit_test(accepts_a_connection_or_reports_it),
        cmocka_unit_test(makes_a_whole_certificate_or_none),
    };
    if (!CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free))
        return 1;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
