/* SPDX-License-Identifier: MIT
 *
 * The self-signed certificate: what it is, when it is made again, and what a damaged or planted
 * file does.
 */
#include "fixture.h"
#include "tls/selfsigned.h"

#include <errno.h>
#include <sys/wait.h>

static const char *const local_names[] = { "localhost", "127.0.0.1", "::1", NULL };
static const char *const other_names[] = { "localhost", "127.0.0.1", "::1", "machine", NULL };

static int set_up(void **state)
{
    static struct tree tree;
    tree_make(&tree);
    *state = &tree;
    return 0;
}

static int tear_down(void **state)
{
    tree_remove(*state);
    return 0;
}

static struct tls_selfsigned get(const struct tree *tree, const char *const *names, int64_t now_s)
{
    struct tls_selfsigned found;
    char why[TLS_WHY_MAX] = "";
    if (!tls_selfsigned_get(tree_absolute(tree, "state/weir"), names, now_s, &found, why))
        fail_msg("%s", why);
    assert_int_equal(ERR_peek_error(), 0);
    return found;
}

static void assert_refused(const struct tree *tree, const char *words)
{
    struct tls_selfsigned found;
    char why[TLS_WHY_MAX] = "";
    assert_false(tls_selfsigned_get(tree_absolute(tree, "state/weir"), local_names, time(NULL),
                                    &found, why));
    if (!strstr(why, words) || strchr(why, '\n'))
        fail_msg("`%s` lacks `%s`", why, words);
}

static struct tls_identity *load(const struct tls_selfsigned *found)
{
    const struct tls_pair pair = { found->file, found->file };
    char why[TLS_WHY_MAX] = "";
    struct tls_identity *identity = tls_identity_new(&pair, why);
    if (!identity)
        fail_msg("%s", why);
    return identity;
}

static mode_t mode_of(const struct tree *tree, const char *path)
{
    struct stat info;
    assert_int_equal(fstatat(tree->fd, path, &info, AT_SYMLINK_NOFOLLOW), 0);
    return info.st_mode & 07777;
}

static void makes_a_certificate_once(void **state)
{
    const struct tree *tree = *state;
    int64_t now_s = time(NULL);
    char text[TLS_WHY_MAX];
    struct tls_selfsigned first = get(tree, local_names, now_s);
    struct tls_selfsigned second = get(tree, local_names, now_s + 300 * DAY_S);
    assert_true(first.made);
    assert_false(second.made);
    assert_string_equal(first.fingerprint, second.fingerprint);
    assert_string_equal(first.file, tree_absolute(tree, "state/weir/self-signed.pem"));
    assert_int_equal(mode_of(tree, "state"), 0700);
    assert_int_equal(mode_of(tree, "state/weir"), 0700);
    assert_int_equal(mode_of(tree, "state/weir/self-signed.pem"), 0600);
    assert_int_equal(mode_of(tree, "state/weir/self-signed.crt"), 0644);

    struct tls_identity *identity = load(&first);
    assert_string_equal(identity->fingerprint, first.fingerprint);
    assert_int_equal(identity->ends_s, first.ends_s);
    assert_true(identity->self_signed);
    assert_true(identity->ends_s - identity->begins_s < 398 * DAY_S);
    assert_in_range(identity->begins_s, now_s - DAY_S, now_s);
    for (size_t i = 0; i < 4; i++) {
        if (local_names[i])
            assert_string_equal(identity->names[i], local_names[i]);
        else
            assert_null(identity->names[i]);
    }
    assert_true(tls_identity_covers(identity, SPAN("[::1]")));
    assert_false(tls_identity_warning(identity, 0, now_s, text));
    assert_int_equal(X509_get_version(identity->leaf), X509_VERSION_3);
    assert_int_equal(X509_get_extended_key_usage(identity->leaf), XKU_SSL_SERVER);
    assert_int_equal(X509_check_ca(identity->leaf), 0);
    tls_identity_free(identity);
}

/* A client that was given the copy of the certificate. */
static bool is_trusted(struct tls_server *server, const char *trusted, const char *host)
{
    struct talk *talk = calloc(1, sizeof(*talk));
    open_client(talk, &(struct client){ 0 });
    SSL_set_verify(talk->client, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_file(talk->context, trusted), 1);
    X509_VERIFY_PARAM *how = SSL_get0_param(talk->client);
    if (X509_VERIFY_PARAM_set1_ip_asc(how, host) != 1)
        assert_int_equal(SSL_set1_host(talk->client, host), 1);
    talk->server = tls_server_accept(server);
    join(talk);
    talk_on(talk);
    bool trusted_it = talk->connected;
    end_talk(talk);
    return trusted_it;
}

static void satisfies_a_client_that_trusts_it(void **state)
{
    const struct tree *tree = *state;
    struct tls_selfsigned found = get(tree, local_names, time(NULL));
    const struct tls_pair pair = { found.file, found.file };
    const struct tls_server_site site = { .name = "local", .pairs = &pair, .pair_count = 1 };
    struct tls_server *server =
        new_server(&(struct tls_server_plan){ .sites = &site, .site_count = 1 });
    assert_true(is_trusted(server, found.certificate, "localhost"));
    assert_true(is_trusted(server, found.certificate, "127.0.0.1"));
    assert_true(is_trusted(server, found.certificate, "::1"));
    assert_false(is_trusted(server, found.certificate, "other.test"));
    assert_false(is_trusted(server, found.certificate, "127.0.0.2"));
    tls_server_free(server);
}

static void makes_it_again_for_other_names_and_before_it_ends(void **state)
{
    const struct tree *tree = *state;
    int64_t now_s = time(NULL);
    struct tls_selfsigned before = get(tree, local_names, now_s), after;
    after = get(tree, other_names, now_s);
    assert_true(after.made);
    assert_string_not_equal(after.fingerprint, before.fingerprint);
    assert_false(get(tree, other_names, now_s).made);
    assert_true(get(tree, local_names, now_s).made);

    before = get(tree, local_names, now_s);
    after = get(tree, local_names, before.ends_s - TLS_SELFSIGNED_RENEW_S);
    assert_false(after.made);
    after = get(tree, local_names, before.ends_s - TLS_SELFSIGNED_RENEW_S + 1);
    assert_true(after.made);
    assert_true(get(tree, local_names, now_s).made); /* the clock went back before its begin */
}

static void makes_it_again_if_the_file_is_damaged(void **state)
{
    const struct tree *tree = *state;
    static const char path[] = "state/weir/self-signed.pem";
    for (unsigned i = 0; i < 6; i++) {
        (void)get(tree, local_names, time(NULL));
        int fd = openat(tree->fd, path, O_RDWR | O_CLOEXEC);
        struct stat info;
        assert_int_equal(fstat(fd, &info), 0);
        switch (i) {
        case 0:
            assert_int_equal(ftruncate(fd, 0), 0);
            break;
        case 1:
            assert_int_equal(ftruncate(fd, info.st_size / 2), 0);
            break;
        case 2:
            assert_int_equal(ftruncate(fd, info.st_size - 10), 0);
            break;
        case 3:
            assert_int_equal(pwrite(fd, "?????", 5, 100), 5);
            break;
        case 4:
            assert_int_equal(ftruncate(fd, TLS_FILE_MAX + 1), 0);
            break;
        default:
            assert_int_equal(fchmod(fd, 0640), 0);
            break; /* the key was readable */
        }
        assert_int_equal(close(fd), 0);
        struct tls_selfsigned found = get(tree, local_names, time(NULL));
        assert_true(found.made);
        assert_int_equal(mode_of(tree, path), 0600);
        tls_identity_free(load(&found));
    }
}

static void restores_the_copy_for_clients(void **state)
{
    const struct tree *tree = *state;
    static const char path[] = "state/weir/self-signed.crt";
    struct tls_selfsigned found = get(tree, local_names, time(NULL));
    tree_remove_file(tree, path);
    assert_false(get(tree, local_names, time(NULL)).made);
    assert_int_equal(mode_of(tree, path), 0644);
    tree_write(tree, path, "half");
    assert_false(get(tree, local_names, time(NULL)).made);
    const struct tls_pair pair = { found.certificate, found.file };
    char why[TLS_WHY_MAX];
    struct tls_identity *identity = tls_identity_new(&pair, why);
    assert_non_null(identity);
    assert_string_equal(identity->fingerprint, found.fingerprint);
    tls_identity_free(identity);
}

/* A process that died has left a file, in any state. */
static void ignores_files_that_were_never_finished(void **state)
{
    const struct tree *tree = *state;
    (void)get(tree, local_names, time(NULL));
    tree_write(tree, "state/weir/.self-signed.pem.0123456789abcdef", "-----BEGIN");
    tree_remove_file(tree, "state/weir/self-signed.pem");
    struct tls_selfsigned found = get(tree, local_names, time(NULL));
    assert_true(found.made);
    tls_identity_free(load(&found));
}

static void assert_untouched(const struct tree *tree)
{
    char text[16] = "";
    int fd = openat(tree->fd, "victim", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, sizeof(text)), 6);
    assert_string_equal(text, "victim");
    assert_int_equal(close(fd), 0);
}

static void follows_no_link_in_its_folder(void **state)
{
    const struct tree *tree = *state;
    tree_write(tree, "victim", "victim");
    (void)get(tree, local_names, time(NULL));
    tree_remove_file(tree, "state/weir/self-signed.pem");
    tree_link(tree, "state/weir/self-signed.pem", "../../victim");
    assert_refused(tree, "self-signed.pem for a self-signed certificate (it is a link or a folder)."
                         " Remove it.");
    tree_remove_file(tree, "state/weir/self-signed.pem");
    tree_link(tree, "state/weir/self-signed.pem", "../../absent");
    assert_refused(tree, "it is a link or a folder");
    tree_remove_file(tree, "state/weir/self-signed.pem");

    tree_remove_file(tree, "state/weir/self-signed.crt");
    tree_link(tree, "state/weir/self-signed.crt", "../../victim");
    assert_true(get(tree, local_names, time(NULL)).made); /* the link is replaced */
    assert_int_equal(mode_of(tree, "state/weir/self-signed.crt"), 0644);
    assert_untouched(tree);

    tree_folder(tree, "elsewhere");
    tree_rename(tree, "state/weir", "state/moved");
    tree_link(tree, "state/weir", "../elsewhere");
    assert_refused(tree, "cannot use the folder ");
    assert_int_equal(faccessat(tree->fd, "elsewhere/self-signed.pem", F_OK, 0), -1);
}

static void refuses_a_folder_that_other_users_control(void **state)
{
    const struct tree *tree = *state;
    (void)get(tree, local_names, time(NULL));
    assert_int_equal(fchmodat(tree->fd, "state/weir", 0770, 0), 0);
    assert_refused(tree, "(other users may write to it). Change its mode to 0700.");
    assert_int_equal(fchmodat(tree->fd, "state/weir", 0700, 0), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(fchownat(tree->fd, "state/weir/self-signed.pem", 12345, 12345, 0), 0);
    assert_refused(tree, "self-signed.pem for a self-signed certificate (it belongs to another");
    assert_int_equal(fchownat(tree->fd, "state/weir", 12345, 12345, 0), 0);
    assert_refused(tree, "weir for a self-signed certificate (it belongs to another user)");
}

static void says_why_the_folder_cannot_be_made(void **state)
{
    const struct tree *tree = *state;
    tree_write(tree, "state", "a file");
    assert_refused(tree, "state/weir for a self-signed certificate (Not a directory). Make it, ");
}

/* One process of several that begin at the same time: 1 if it made the certificate, 0 if not. */
static int make_with_others(const struct tree *tree, int start, const char *const *names,
                            const char *report)
{
    struct tls_selfsigned found;
    char why[TLS_WHY_MAX] = "", byte;
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s/state/weir", tree->path);
    if (read(start, &byte, 1) != 0 || !tls_selfsigned_get(folder, names, time(NULL), &found, why))
        return 2;
    const struct tls_pair pair = { found.file, found.file };
    struct tls_identity *identity = tls_identity_new(&pair, why);
    if (!identity)
        return 3;
    tls_identity_free(identity);
    tree_write(tree, report, found.fingerprint);
    return found.made;
}

/* Ends with the number of processes that made a certificate. */
static unsigned make_at_once(const struct tree *tree, const char *const *const names[2])
{
    enum { PROCESSES = 8 };
    int start[2];
    pid_t child[PROCESSES];
    unsigned made = 0;
    assert_int_equal(pipe(start), 0);
    for (unsigned i = 0; i < PROCESSES; i++) {
        char report[16];
        (void)snprintf(report, sizeof(report), "report-%u", i);
        child[i] = fork();
        if (child[i] == 0) {
            (void)close(start[1]);
            _exit(make_with_others(tree, start[0], names[i % 2], report));
        }
        assert_true(child[i] > 0);
    }
    (void)close(start[0]);
    (void)close(start[1]); /* all begin */
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        made += (unsigned)WEXITSTATUS(status);
    }
    return made;
}

static void lets_one_of_several_processes_make_it(void **state)
{
    const struct tree *tree = *state;
    char first[TLS_FINGERPRINT_MAX + 1] = "", other[TLS_FINGERPRINT_MAX + 1] = "";
    const char *const *const same[2] = { local_names, local_names };
    assert_int_equal(make_at_once(tree, same), 1);
    for (unsigned i = 0; i < 8; i++) {
        char report[16];
        (void)snprintf(report, sizeof(report), "report-%u", i);
        int fd = openat(tree->fd, report, O_RDONLY | O_CLOEXEC);
        assert_int_equal(read(fd, i == 0 ? first : other, TLS_FINGERPRINT_MAX), 95);
        assert_int_equal(close(fd), 0);
        if (i > 0)
            assert_string_equal(other, first);
    }
}

/* Each process finds a key that belongs to the certificate, also when another one has replaced the
 * file meanwhile. */
static void never_mixes_what_two_processes_make(void **state)
{
    const struct tree *tree = *state;
    const char *const *const different[2] = { local_names, other_names };
    for (unsigned i = 0; i < 5; i++)
        assert_true(make_at_once(tree, different) >= 1);
}

static void finds_the_folder_of_the_user(void **state)
{
    (void)state;
    char folder[TLS_SELFSIGNED_PATH_MAX];
    pid_t child = fork();
    if (child == 0) {
        int wrong = 0;
        if (geteuid() == 0) {
            wrong |= tls_selfsigned_folder(folder) != 0 || strcmp(folder, "/var/lib/weir") != 0;
            wrong |= (seteuid(12345) != 0) << 1;
        }
        (void)setenv("XDG_STATE_HOME", "/states", 1);
        (void)setenv("HOME", "/home/name", 1);
        wrong |= (tls_selfsigned_folder(folder) != 0 || strcmp(folder, "/states/weir") != 0) << 2;
        (void)setenv("XDG_STATE_HOME", "relative", 1);
        wrong |= (tls_selfsigned_folder(folder) != 0 ||
                  strcmp(folder, "/home/name/.local/state/weir") != 0)
                 << 3;
        char *deep = calloc(1, TLS_SELFSIGNED_PATH_MAX + 1);
        memset(deep, '/', TLS_SELFSIGNED_PATH_MAX);
        (void)setenv("XDG_STATE_HOME", deep, 1);
        wrong |= (tls_selfsigned_folder(folder) != -ENAMETOOLONG) << 4;
        free(deep);
        _exit(wrong);
    }
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void knows_the_names_of_this_machine(void **state)
{
    (void)state;
    struct tls_selfsigned_names names;
    tls_selfsigned_local(&names);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(names.list[i], local_names[i]);
    assert_null(names.list[4]);
    if (names.list[3]) {
        char machine[256] = "";
        assert_int_equal(gethostname(machine, sizeof(machine) - 1), 0);
        assert_int_equal(strcasecmp(names.list[3], machine), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_a_certificate_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(satisfies_a_client_that_trusts_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(makes_it_again_for_other_names_and_before_it_ends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(makes_it_again_if_the_file_is_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(restores_the_copy_for_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ignores_files_that_were_never_finished, set_up, tear_down),
        cmocka_unit_test_setup_teardown(follows_no_link_in_its_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_a_folder_that_other_users_control, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(says_why_the_folder_cannot_be_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lets_one_of_several_processes_make_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(never_mixes_what_two_processes_make, set_up, tear_down),
        cmocka_unit_test(finds_the_folder_of_the_user),
        cmocka_unit_test(knows_the_names_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
