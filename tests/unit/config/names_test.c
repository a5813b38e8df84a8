/* SPDX-License-Identifier: MIT
 *
 * Names of a configuration: what is found, also after the table has grown.
 */
#include "config/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void finds_what_was_set_in_its_scope(void **state)
{
    (void)state;
    struct config_names names = { .slots = NULL };
    const int a = 0, b = 0, value = 0, other = 0;
    assert_null(config_names_find(&names, &a, SPAN("x")));
    config_names_set(&names, &a, SPAN("x"), &value);
    assert_ptr_equal(config_names_find(&names, &a, SPAN("x")), &value);
    assert_null(config_names_find(&names, &b, SPAN("x")));
    assert_null(config_names_find(&names, &a, SPAN("")));
    config_names_set(&names, &a, SPAN("x"), &other);
    assert_ptr_equal(config_names_find(&names, &a, SPAN("x")), &other);
    config_names_done(&names);
    assert_null(config_names_find(&names, &a, SPAN("x")));
}

static void keeps_many_names(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static char text[COUNT][8];
    struct config_names names = { .slots = NULL };
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%zu", i);
        assert_null(config_names_find(&names, &names, span_text(text[i])));
        config_names_set(&names, &names, span_text(text[i]), text[i]);
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_ptr_equal(config_names_find(&names, &names, span_text(text[i])), text[i]);
    config_names_done(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_set_in_its_scope),
        cmocka_unit_test(keeps_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
