/* SPDX-License-Identifier: MIT
 *
 * Passwords: which are accepted, and how often any is compared.
 */
#include "base/duration.h"
#include "page/password.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Each is "user:" and the password, in base64. */
#define SESAME "Basic dXNlcjpzZXNhbWU="     /* sesame */
#define COLONS "Basic OmE6Yjpj"             /* a:b:c, with an empty user name */
#define EMPTY  "Basic dXNlcjo="             /* nothing */
#define NUL    "Basic dXNlcjpzZXNhbWUAeA==" /* sesame, NUL, x */

struct fixture {
    struct page_password password;
    char hash[AUTH_HASH_MAX];
};

static struct fixture with(const char *text)
{
    struct fixture f = { 0 };
    assert_int_equal(auth_hash_make(text, f.hash), 0);
    assert_true(auth_hash_can_use(f.hash));
    return f;
}

static enum page_password_verdict check(struct fixture *f, const char *field, uint64_t now_ns)
{
    struct guard guard;
    enum page_password_verdict verdict =
        page_password_check(&f->password, guard_text(&guard, field), now_ns);
    guard_done(&guard);
    for (size_t i = 0; i < sizeof(f->password.basic.text); i++)
        if (f->password.basic.text[i] != 0)
            fail_msg("`%s` left something of itself", field);
    return verdict;
}

static void accepts_the_right_password(void **state)
{
    (void)state;
    struct fixture f = with("sesame");
    assert_int_equal(page_password_init(&f.password, f.hash), 0);
    assert_int_equal(check(&f, SESAME, DURATION_SECOND), PAGE_PASSWORD_RIGHT);
    assert_int_equal(check(&f, "bASIC   dXNlcjpzZXNhbWU", DURATION_SECOND), PAGE_PASSWORD_RIGHT);
    assert_int_equal(check(&f, COLONS, DURATION_SECOND), PAGE_PASSWORD_WRONG);

    f = with("a:b:c");
    assert_int_equal(page_password_init(&f.password, f.hash), 0);
    assert_int_equal(check(&f, COLONS, DURATION_SECOND), PAGE_PASSWORD_RIGHT);
    assert_int_equal(check(&f, SESAME, DURATION_SECOND), PAGE_PASSWORD_WRONG);
}

static void refuses_malformed_fields_without_comparing(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "",        "Basic",           "Basic ",           "Basic dXNlcg==",
        "Basic !", "Basic dXNl cjpz", "Bearer dXNlcjpz",  EMPTY,
        NUL,       "Basic ====",      "dXNlcjpzZXNhbWU=",
    };
    struct fixture f = with("sesame");
    assert_int_equal(page_password_init(&f.password, f.hash), 0);
    for (unsigned times = 0; times < 3; times++)
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            assert_int_equal(check(&f, fields[i], DURATION_SECOND), PAGE_PASSWORD_WRONG);
    assert_int_equal(f.password.checks, 0);

    char longest[4096] = "Basic ";
    memset(longest + 6, 'A', sizeof(longest) - 7);
    assert_int_equal(check(&f, longest, DURATION_SECOND), PAGE_PASSWORD_WRONG);
}

static void compares_a_few_passwords_in_a_second(void **state)
{
    (void)state;
    char field[] = "Basic dXNlcjphYWFh"; /* user:aaaa */
    struct fixture f = with("sesame");
    assert_int_equal(page_password_init(&f.password, f.hash), 0);
    assert_int_equal(check(&f, SESAME, DURATION_SECOND),
                     PAGE_PASSWORD_RIGHT); /* the first of these */
    for (unsigned i = 1; i < 10; i++) {
        field[sizeof(field) - 2] = (char)('a' + i);
        enum page_password_verdict expected = i < PAGE_PASSWORD_CHECKS ? PAGE_PASSWORD_WRONG
                                                                       : PAGE_PASSWORD_LATER;
        assert_int_equal(check(&f, field, DURATION_SECOND + 1), expected);
        assert_int_equal(check(&f, SESAME, DURATION_SECOND + 2), PAGE_PASSWORD_RIGHT);
    }
    assert_int_equal(check(&f, field, 2 * DURATION_SECOND), PAGE_PASSWORD_WRONG);
    for (unsigned i = 0; i < 10; i++) /* the same password again is known */
        assert_int_equal(check(&f, field, 2 * DURATION_SECOND), PAGE_PASSWORD_WRONG);
    assert_int_equal(f.password.checks, 1);
}

static void needs_no_password_when_none_is_set(void **state)
{
    (void)state;
    struct page_password password;
    assert_int_equal(page_password_init(&password, NULL), 0);
    assert_int_equal(page_password_check(&password, SPAN(""), 0), PAGE_PASSWORD_RIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_the_right_password),
        cmocka_unit_test(refuses_malformed_fields_without_comparing),
        cmocka_unit_test(compares_a_few_passwords_in_a_second),
        cmocka_unit_test(needs_no_password_when_none_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
