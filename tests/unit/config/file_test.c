/* SPDX-License-Identifier: MIT
 *
 * The form of the file: what is told of each line, and that the line's number
 * is the right one.
 */
#include "config/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

/* What was told, as text: `1[server]`, `2listen=80`, `3!` for a problem. */
struct told {
    char text[4096];
    size_t len;
};

static void tell_section(void *context, struct span text, unsigned line)
{
    struct told *told = context;
    told->len += (size_t)snprintf(told->text + told->len, sizeof(told->text) - told->len,
                                  "%u[%.*s] ", line, (int)text.len, text.at);
}

static void tell_setting(void *context, struct span name, struct span value, unsigned line)
{
    struct told *told = context;
    told->len += (size_t)snprintf(told->text + told->len, sizeof(told->text) - told->len,
                                  "%u{%.*s=%.*s} ", line, (int)name.len, name.at, (int)value.len,
                                  value.at);
}

static void assert_told(struct span text, const char *expected)
{
    struct config_arena arena = { 0 };
    struct config_problems problems = { .arena = &arena };
    struct told told = { .len = 0 };
    struct config_file_handler handler = { &told, tell_section, tell_setting };
    char *exact = malloc(text.len + 1); /* so that a read behind the end is seen */
    assert_non_null(exact);
    memcpy(exact, text.at, text.len);
    exact = realloc(exact, text.len > 0 ? text.len : 1);
    config_file_parse(span_of(exact, text.len), "f", &handler, &problems);
    for (const struct config_problem *p = problems.first; p; p = p->next)
        told.len += (size_t)snprintf(told.text + told.len, sizeof(told.text) - told.len, "%u! ",
                                     p->origin.line);
    free(exact);
    config_arena_done(&arena);
    if (strcmp(told.text, expected) != 0)
        fail_msg("`%.*s` gives `%s`, expected `%s`", (int)text.len, text.at, told.text, expected);
}

static void tells_sections_and_settings_with_their_lines(void **state)
{
    (void)state;
    assert_told(SPAN(""), "");
    assert_told(SPAN("\n\n\n"), "");
    assert_told(SPAN("[server]\nlisten = 80\n"), "1[server] 2{listen=80} ");
    assert_told(SPAN("\n\n[ site a ]\n\n\nroot=/srv"), "3[site a] 6{root=/srv} ");
    assert_told(SPAN("a = \nb ="), "1{a=} 2{b=} ");
    assert_told(SPAN("a : b = c\na = b : c"), "1{a=b = c} 2{a=b : c} ");
    assert_told(SPAN("[x]\n[x]\n[y]\n"), "1[x] 2[x] 3[y] ");
}

static void indentation_is_free_and_no_line_continues_another(void **state)
{
    (void)state;
    assert_told(SPAN("[x]\n  a = 1\n\t b = 2\n      c = 3\n"), "1[x] 2{a=1} 3{b=2} 4{c=3} ");
    assert_told(SPAN("a = 1\n  more\n"), "1{a=1} 2! ");
}

static void takes_the_line_ends_and_marks_of_other_systems(void **state)
{
    (void)state;
    assert_told(SPAN("\xef\xbb\xbf[x]\r\na = 1\r\n\r\nb = 2 \r\n"), "1[x] 2{a=1} 4{b=2} ");
}

static void comments_stand_on_their_own_lines(void **state)
{
    (void)state;
    assert_told(SPAN("# a = 1\n; b = 2\n  # c\n"), "");
    assert_told(SPAN("a = b # c\nd = e ; f\ng = h;i\n"), "1{a=b # c} 2{d=e ; f} 3{g=h;i} ");
}

static void tells_each_line_that_it_cannot_read(void **state)
{
    (void)state;
    assert_told(SPAN("[x\n"), "1! ");
    assert_told(SPAN("[x] y\n"), "1! ");
    assert_told(SPAN("words\nmore words\na = 1\nlast"), "3{a=1} 1! 2! 4! ");
    assert_told(SPAN("= 1\n: 2\n"), "1! 2! ");
    assert_told(SPAN("a = 1\0b\nc = 2\n"), "2{c=2} 1! ");
    assert_told(SPAN("[a\0b]\n"), "1! ");
}

static void a_line_may_be_thousands_of_bytes_but_not_any_number(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'v', sizeof(text));
    memcpy(text, "a=", 2);
    struct config_arena arena = { 0 };
    struct config_problems problems = { .arena = &arena };
    struct told told = { .len = 0 };
    struct config_file_handler handler = { &told, tell_section, tell_setting };
    config_file_parse(span_of(text, 4000), "f", &handler, &problems);
    assert_int_equal(problems.error_count, 0);
    assert_int_equal(told.len, strlen("1{a=} ") + 4000 - 2);
    config_file_parse(span_of(text, sizeof(text)), "f", &handler, &problems);
    assert_int_equal(problems.error_count, 1);
    config_arena_done(&arena);
}

static void loads_files_and_says_why_not(void **state)
{
    (void)state;
    struct config_arena arena = { 0 };
    struct span text = SPAN("unwritten");
    assert_int_equal(config_file_load("/", &arena, &text), -EISDIR);
    assert_int_equal(config_file_load("/nowhere/at/all", &arena, &text), -ENOENT);
    assert_int_equal(config_file_load("/dev/zero", &arena, &text), -EFBIG);
    assert_true(span_equal(text, SPAN("unwritten")));
    assert_int_equal(config_file_load("/dev/null", &arena, &text), 0);
    assert_int_equal(text.len, 0);
    config_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_sections_and_settings_with_their_lines),
        cmocka_unit_test(indentation_is_free_and_no_line_continues_another),
        cmocka_unit_test(takes_the_line_ends_and_marks_of_other_systems),
        cmocka_unit_test(comments_stand_on_their_own_lines),
        cmocka_unit_test(tells_each_line_that_it_cannot_read),
        cmocka_unit_test(a_line_may_be_thousands_of_bytes_but_not_any_number),
        cmocka_unit_test(loads_files_and_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
