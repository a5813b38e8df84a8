/* SPDX-License-Identifier: MIT
 *
 * The credentials of Basic authentication, and hashes of passwords.
 */
#include "auth/basic.h"

#include "base/base64.h"
#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static bool read_basic(const char *field, struct auth_basic *ret_basic)
{
    struct guard guard;
    const bool good = auth_basic_read(guard_text(&guard, field), ret_basic);
    guard_done(&guard);
    return good;
}

/* The field of `user:password` with any bytes. */
static bool read_encoded(struct span text, struct auth_basic *ret_basic)
{
    char field[4096] = "Basic ";
    assert_true(BASE64_CHARS(text.len) < sizeof(field) - 7);
    base64_encode((const uint8_t *)text.at, text.len, field + 6);
    field[6 + BASE64_CHARS(text.len)] = '\0';
    return read_basic(field, ret_basic);
}

static void reads_a_user_and_a_password(void **state)
{
    (void)state;
    static const struct {
        const char *text, *user, *password;
    } cases[] = {
        { "alice:sesame", "alice", "sesame" },
        { "alice:a:b:c", "alice", "a:b:c" },
        { ":sesame", "", "sesame" },
        { "test:123\xc2\xa3", "test", "123\xc2\xa3" }, /* RFC 7617 section 2.1 */
    };
    struct auth_basic basic;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(read_encoded(span_text(cases[i].text), &basic));
        assert_true(span_equal(basic.user, span_text(cases[i].user)));
        assert_string_equal(basic.password, cases[i].password);
    }
    assert_true(read_basic("bASIC   QWxhZGRpbjpvcGVuIHNlc2FtZQ", &basic)); /* without padding */
    assert_string_equal(basic.password, "open sesame");
}

static void assert_cleared(const struct auth_basic *basic)
{
    for (size_t i = 0; i < sizeof(basic->text); i++)
        assert_int_equal(basic->text[i], 0);
}

static void refuses_other_fields_and_keeps_nothing_of_them(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "", "Basic", "Basic ", "Basic !", "Basic YTpi Yw==", "Bearer YTpi", "YTpi", "Basic ====",
    };
    struct auth_basic basic;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        memset(&basic, 0, sizeof(basic));
        assert_false(read_basic(fields[i], &basic));
        assert_cleared(&basic);
    }
    static const struct span texts[] = {
        { "alice", 5 },           { "alice:", 6 },         { "alice:se\0same", 13 },
        { "al\nice:sesame", 13 }, { "alice:ses\x7f", 10 }, { "\x1f:x", 3 },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_false(read_encoded(texts[i], &basic));
        assert_cleared(&basic);
    }
}

static void refuses_names_and_passwords_that_are_too_long(void **state)
{
    (void)state;
    char text[AUTH_USER_MAX + AUTH_PASSWORD_MAX + 3];
    struct auth_basic basic;
    memset(text, 'x', sizeof(text));
    text[AUTH_USER_MAX] = ':';
    assert_true(read_encoded(span_of(text, AUTH_USER_MAX + 1 + AUTH_PASSWORD_MAX), &basic));
    assert_false(read_encoded(span_of(text, AUTH_USER_MAX + 2 + AUTH_PASSWORD_MAX), &basic));
    text[AUTH_USER_MAX] = 'x';
    text[AUTH_USER_MAX + 1] = ':';
    assert_false(read_encoded(span_of(text, AUTH_USER_MAX + 3), &basic));

    char longest[2048] = "Basic ";
    memset(longest + 6, 'A', sizeof(longest) - 7);
    assert_false(read_basic(longest, &basic));
}

static void forgets_all(void **state)
{
    (void)state;
    struct auth_basic basic;
    assert_true(read_encoded(SPAN("alice:sesame"), &basic));
    auth_basic_forget(&basic);
    assert_cleared(&basic);
    assert_null(basic.password);
}

static void recognises_hashes_that_it_can_use(void **state)
{
    (void)state;
    char hash[AUTH_HASH_MAX];
    assert_int_equal(auth_hash_make("sesame", hash), 0);
    assert_true(auth_hash_can_use(hash));
    assert_int_equal(auth_hash_compare(hash, "sesame"), 1);
    assert_int_equal(auth_hash_compare(hash, "sesamf"), 0);
    assert_int_equal(auth_hash_compare("$nothing$of$this", "sesame"), 0);
    assert_false(auth_hash_can_use("$nothing$of$this"));
    assert_false(auth_hash_can_use("ab0123456789a"));
    assert_false(auth_hash_can_use(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_user_and_a_password),
        cmocka_unit_test(refuses_other_fields_and_keeps_nothing_of_them),
        cmocka_unit_test(refuses_names_and_passwords_that_are_too_long),
        cmocka_unit_test(forgets_all),
        cmocka_unit_test(recognises_hashes_that_it_can_use),
    };
    return cmocka_run_group_tests_name("auth/basic", tests, NULL, NULL);
}
