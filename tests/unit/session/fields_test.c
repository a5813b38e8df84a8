/* SPDX-License-Identifier: MIT
 *
 * Which of a site's own fields an error carries.
 */
#include "session/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void a_field_that_gives_a_lifetime_is_not_in_errors(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool in_errors;
    } rows[] = {
        { "X-Frame-Options: DENY", true },
        { "Cache-Control: max-age=31536000", false },
        { "cache-control: MAX-AGE=1", false },
        { "Cache-Control: public", false },
        { "Cache-Control: private, max-age=60", false },
        { "Cache-Control: no-cache,s-maxage=5", false },
        { "Cache-Control: max-age=\"60\"", false },
        { "Cache-Control: immutable", false },
        { "Cache-Control: max-age=0, stale-while-revalidate=30", false },
        { "Cache-Control: stale-if-error=30", false },
        { "CDN-Cache-Control: max-age=60", false },
        { "Surrogate-Control: max-age=60", false },
        { "Expires: Thu, 01 Jan 2032 00:00:00 GMT", false },
        { "Cache-Control: no-store", true },
        { "Cache-Control: private", true },
        { "Cache-Control: max-age=0, must-revalidate", true },
        { "Cache-Control: no-cache, s-maxage = 0", true },
        { "CDN-Cache-Control: no-store", true },
        { "X-Public: public", true },
        { "Control: max-age=60", true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const lines[] = { rows[i].line, NULL };
        struct session_fields fields;
        assert_true(session_fields_join(&fields, lines, NULL));
        assert_int_equal(fields.all.len, strlen(rows[i].line) + 2);
        if (fields.of_errors.len != (rows[i].in_errors ? fields.all.len : 0))
            fail_msg("`%s`: %zu bytes in errors", rows[i].line, fields.of_errors.len);
        session_fields_free(&fields);
    }
}

static void the_other_fields_keep_their_order(void **state)
{
    (void)state;
    static const char *const lines[] = { "A: 1", "Cache-Control: max-age=60", "B: 2", NULL };
    struct session_fields fields;
    assert_true(session_fields_join(&fields, lines, NULL));
    assert_true(span_equal(fields.all, SPAN("A: 1\r\nB: 2\r\nCache-Control: max-age=60\r\n")));
    assert_true(span_equal(fields.of_errors, SPAN("A: 1\r\nB: 2\r\n")));
    session_fields_free(&fields);
}

static void a_site_without_fields_has_empty_ones(void **state)
{
    (void)state;
    struct session_fields fields;
    assert_true(session_fields_join(&fields, NULL, NULL));
    assert_int_equal(fields.all.len, 0);
    assert_int_equal(fields.of_errors.len, 0);
    session_fields_free(&fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_that_gives_a_lifetime_is_not_in_errors),
        cmocka_unit_test(the_other_fields_keep_their_order),
        cmocka_unit_test(a_site_without_fields_has_empty_ones),
    };
    return cmocka_run_group_tests_name("session/fields", tests, NULL, NULL);
}
