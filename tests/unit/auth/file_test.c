/* SPDX-License-Identifier: MIT
 *
 * Lists of users: which lines are accepted, and what a wrong line is reported as.
 */
#include "auth/file.h"

#include "auth/hash.h"
#include "support/guard.h"
#include "tree.h"

#define BCRYPT   "$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW"
#define BCRYPT_Y "$2y$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW"
#define SHA256   "$5$rounds=1000$salt$rloU6KpfKKm9G.NUT4Kh3.lZ3eQ67D/GrlYTTZlly7."
#define SHA512 \
    "$6$s$UU/gbFH5uvoxLeeOM3HAEFlgRLdHxKJ0cnASUc9mVtCbKnYrHOvX7ffhXBAngDFCCos.MBDD2O1fIJYiZZm.G0"
#define YESCRYPT "$y$j75$abcd$MWJRD5wgACCIlRaOpjxHkmXka9x6zHyzn5IOTN9tWe9"

static struct auth_file *parse(const char *text, unsigned *ret_line, const char **ret_why)
{
    struct guard guard;
    struct auth_file *file = auth_file_parse(guard_text(&guard, text), ret_line, ret_why);
    guard_done(&guard);
    return file;
}

static struct auth_file *parse_good(const char *text)
{
    unsigned line;
    const char *why;
    struct auth_file *file = parse(text, &line, &why);
    if (!file)
        fail_msg("line %u: %s", line, why);
    return file;
}

static bool opens(const struct auth_file *file, const char *user, const char *password)
{
    bool known;
    const char *hash = auth_file_find(file, span_text(user), 0, &known);
    return auth_hash_compare(hash, password) == 1 && known;
}

static void accepts_each_kind_of_hash(void **state)
{
    (void)state;
    static const char *const hashes[] = { BCRYPT, BCRYPT_Y, SHA256, SHA512, YESCRYPT };
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "alice:%s\n", hashes[i]);
        struct auth_file *file = parse_good(text);
        assert_true(opens(file, "alice", "sesame"));
        assert_false(opens(file, "alice", "Sesame"));
        assert_false(opens(file, "alic", "sesame"));
        auth_file_free(file);
    }
}

static void finds_each_user_of_a_file(void **state)
{
    (void)state;
    struct auth_file *file = parse_good("\xef\xbb\xbf# people\n\nzoe:" BCRYPT "\r\nbob:" SHA256
                                        ":a comment\n"
                                        "   \nb:" BCRYPT_Y "\nj\xc3\xb6rg:" YESCRYPT);
    static const char *const users[] = { "zoe", "bob", "b", "j\xc3\xb6rg" };
    assert_int_equal(auth_file_count(file), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(opens(file, users[i], "sesame"));
    assert_false(opens(file, "", "sesame"));
    assert_false(opens(file, "bobb", "sesame"));
    assert_false(opens(file, "# people", "sesame"));
    auth_file_free(file);
}

static void an_unknown_user_is_compared_with_the_hash_of_another_one(void **state)
{
    (void)state;
    struct auth_file *file = parse_good("a:" BCRYPT "\nb:" SHA256 "\nc:" SHA512 "\n");
    bool seen[3] = { false, false, false };
    for (uint64_t choice = 0; choice < 3; choice++) {
        bool known = true;
        const char *hash = auth_file_find(file, SPAN("nobody"), choice, &known);
        assert_false(known);
        assert_ptr_equal(hash, auth_file_find(file, SPAN("nobody"), choice, &known));
        seen[choice] = strcmp(hash, BCRYPT) == 0 || strcmp(hash, SHA256) == 0 ||
                       strcmp(hash, SHA512) == 0;
        assert_true(seen[choice]);
    }
    auth_file_free(file);
}

static void refuses_a_file_for_one_wrong_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
        unsigned line;
    } cases[] = {
        { "", "has no user", 0 },
        { "# nothing\n\n", "has no user", 0 },
        { "alice:" BCRYPT "\nbob\n", "has no colon", 2 },
        { ":" BCRYPT, "no user name", 1 },
        { "alice:secret", "no hash of bcrypt", 1 },
        { "alice:", "no hash of bcrypt", 1 },
        { "alice:ab0123456789a", "no hash of bcrypt", 1 },
        { "\n\nalice:$apr1$salt$0123456789012345678901", "Apache's MD5", 3 },
        { "alice:$1$salt$0123456789012345678901", "hash of MD5", 1 },
        { "alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1", 1 },
        { "alice:{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1", 1 },
        { "alice:{PLAIN}secret", "password and not its hash", 1 },
        { "alice:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85R", "wrong length", 1 },
        { "alice:$5$rounds=1000$salt$", "wrong length", 1 },
        { "alice:$6$salt", "wrong length", 1 },
        { "alice:$2b$99$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW", "wrong length", 1 },
        { "al\tice:" BCRYPT, "control character", 1 },
        { "al\xffice:" BCRYPT, "UTF-8", 1 },
        { "alice:" BCRYPT "\nbob:" SHA256 "\n\nalice:" SHA512 "\n", "line before this one", 4 },
        { "alice:" BCRYPT " ", "wrong length", 1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned line = 99;
        const char *why = NULL;
        assert_null(parse(cases[i].text, &line, &why));
        assert_non_null(why);
        if (!strstr(why, cases[i].why) || line != cases[i].line)
            fail_msg("`%s`: line %u, %s", cases[i].text, line, why);
    }
    char name[300];
    unsigned line;
    const char *why;
    memset(name, 'x', 256);
    (void)snprintf(name + 256, sizeof(name) - 256, ":");
    assert_null(parse(name, &line, &why));
    assert_non_null(strstr(why, "255"));
}

static void refuses_a_nul_in_a_line(void **state)
{
    (void)state;
    unsigned line;
    const char *why;
    assert_null(auth_file_parse(SPAN("alice:" BCRYPT "\0x\n"), &line, &why));
    assert_int_equal(line, 1);
    assert_null(auth_file_parse(SPAN("al\0ice:" BCRYPT "\n"), &line, &why));
    assert_int_equal(line, 1);
}

/* ---- from the disk ---- */

static void names_the_file_and_the_line(void **state)
{
    (void)state;
    struct tree tree;
    char why[AUTH_WHY_MAX], path[256], start[300];
    tree_make(&tree);
    tree_write(&tree, "users", "alice:" BCRYPT "\nbob:secret\n");
    (void)snprintf(path, sizeof(path), "%s/users", tree.path);
    assert_null(auth_file_read(path, why));
    (void)snprintf(start, sizeof(start), "%s:2: ", path);
    assert_true(span_starts(span_text(why), span_text(start)));
    assert_null(strstr(why, "secret"));

    tree_write(&tree, "users", "alice:" BCRYPT "\n");
    struct auth_file *file = auth_file_read(path, why);
    assert_non_null(file);
    assert_true(opens(file, "alice", "sesame"));
    auth_file_free(file);

    assert_null(auth_file_read(tree.path, why)); /* a folder */
    assert_non_null(strstr(why, "not a file"));
    (void)snprintf(path, sizeof(path), "%s/none", tree.path);
    assert_null(auth_file_read(path, why));
    assert_non_null(strstr(why, "No such file"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(auth_file_read(path, why));
    assert_non_null(strstr(why, "not a file"));
    tree_remove(&tree);
}

static void refuses_a_file_that_is_too_large(void **state)
{
    (void)state;
    struct tree tree;
    char why[AUTH_WHY_MAX], path[256];
    char *bytes = malloc(AUTH_FILE_MAX + 1);
    assert_non_null(bytes);
    memset(bytes, '\n', AUTH_FILE_MAX + 1);
    tree_make(&tree);
    tree_write_bytes(&tree, "users", span_of(bytes, AUTH_FILE_MAX + 1));
    (void)snprintf(path, sizeof(path), "%s/users", tree.path);
    assert_null(auth_file_read(path, why));
    assert_non_null(strstr(why, "1 MiB"));
    memcpy(bytes, "alice:" BCRYPT, sizeof("alice:" BCRYPT) - 1);
    tree_write_bytes(&tree, "users", span_of(bytes, AUTH_FILE_MAX));
    struct auth_file *file = auth_file_read(path, why);
    assert_non_null(file);
    auth_file_free(file);
    free(bytes);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_each_kind_of_hash),
        cmocka_unit_test(finds_each_user_of_a_file),
        cmocka_unit_test(an_unknown_user_is_compared_with_the_hash_of_another_one),
        cmocka_unit_test(refuses_a_file_for_one_wrong_line),
        cmocka_unit_test(refuses_a_nul_in_a_line),
        cmocka_unit_test(names_the_file_and_the_line),
        cmocka_unit_test(refuses_a_file_that_is_too_large),
    };
    return cmocka_run_group_tests_name("auth/file", tests, NULL, NULL);
}
