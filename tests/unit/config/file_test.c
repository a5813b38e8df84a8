/* SPDX-License-Identifier: MIT
 *
 * The form of the file: what the handler gets for each line, and with which line number.
 */
#include "config/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

/* The calls of the handler as text: `1[server]`, `2{listen=80}`, `3!` for a problem. */
struct calls {
    char text[4096];
    size_t len;
};

static void on_section(void *context, struct span text, unsigned line)
{
    struct calls *calls = context;
    calls->len += (size_t)snprintf(calls->text + calls->len, sizeof(calls->text) - calls->len,
                                   "%u[%.*s] ", line, (int)text.len, text.at);
}

static void on_setting(void *context, struct span name, struct span value, unsigned line)
{
    struct calls *calls = context;
    calls->len += (size_t)snprintf(calls->text + calls->len, sizeof(calls->text) - calls->len,
                                   "%u{%.*s=%.*s} ", line, (int)name.len, name.at, (int)value.len,
                                   value.at);
}

static void assert_calls(struct span text, const char *expected)
{
    struct config_arena arena = { 0 };
    struct config_problems problems = { .arena = &arena };
    struct calls calls = { .len = 0 };
    struct config_file_handler handler = { &calls, on_section, on_setting };
    char *exact = malloc(text.len + 1); /* so that a read behind the end is seen */
    assert_non_null(exact);
    memcpy(exact, text.at, text.len);
    exact = realloc(exact, text.len > 0 ? text.len : 1);
    config_file_parse(span_of(exact, text.len), "f", &handler, &problems);
    for (const struct config_problem *p = problems.first; p; p = p->next)
        calls.len += (size_t)snprintf(calls.text + calls.len, sizeof(calls.text) - calls.len,
                                      "%u! ", p->origin.line);
    free(exact);
    config_arena_done(&arena);
    if (strcmp(calls.text, expected) != 0)
        fail_msg("`%.*s` gives `%s`, expected `%s`", (int)text.len, text.at, calls.text, expected);
}

static void reports_sections_and_settings_with_their_lines(void **state)
{
    (void)state;
    assert_calls(SPAN(""), "");
    assert_calls(SPAN("\n\n\n"), "");
    assert_calls(SPAN("[server]\nlisten = 80\n"), "1[server] 2{listen=80} ");
    assert_calls(SPAN("\n\n[ site a ]\n\n\nroot=/srv"), "3[site a] 6{root=/srv} ");
    assert_calls(SPAN("a = \nb ="), "1{a=} 2{b=} ");
    assert_calls(SPAN("a : b = c\na = b : c"), "1{a=b = c} 2{a=b : c} ");
    assert_calls(SPAN("[x]\n[x]\n[y]\n"), "1[x] 2[x] 3[y] ");
}

static void indentation_is_free_and_no_line_continues_another(void **state)
{
    (void)state;
    assert_calls(SPAN("[x]\n  a = 1\n\t b = 2\n      c = 3\n"), "1[x] 2{a=1} 3{b=2} 4{c=3} ");
    assert_calls(SPAN("a = 1\n  more\n"), "1{a=1} 2! ");
}

static void accepts_the_line_ends_and_byte_order_mark_of_other_systems(void **state)
{
    (void)state;
    assert_calls(SPAN("\xef\xbb\xbf[x]\r\na = 1\r\n\r\nb = 2 \r\n"), "1[x] 2{a=1} 4{b=2} ");
}

static void a_comment_has_its_own_line(void **state)
{
    (void)state;
    assert_calls(SPAN("# a = 1\n; b = 2\n  # c\n"), "");
    assert_calls(SPAN("a = b # c\nd = e ; f\ng = h;i\n"), "1{a=b # c} 2{d=e ; f} 3{g=h;i} ");
}

static void reports_each_line_that_it_cannot_read(void **state)
{
    (void)state;
    assert_calls(SPAN("[x\n"), "1[x] 1! "); /* the section of the lines below */
    assert_calls(SPAN("[x] y\n"), "1[x] 1! ");
    assert_calls(SPAN("words\nmore words\na = 1\nlast"), "3{a=1} 1! 2! 4! ");
    assert_calls(SPAN("= 1\n: 2\n"), "1! 2! ");
    assert_calls(SPAN("a = 1\0b\nc = 2\n"), "1! "); /* what follows is no text, either */
    assert_calls(SPAN("[a\0b]\n"), "1! ");
}

/* The one problem of the text. */
static void assert_problem(struct span text, const char *expected)
{
    struct config_arena arena = { 0 };
    struct config_problems problems = { .arena = &arena };
    struct calls calls = { .len = 0 };
    struct config_file_handler handler = { &calls, on_section, on_setting };
    config_file_parse(text, "f", &handler, &problems);
    assert_int_equal(problems.error_count, 1);
    assert_string_equal(problems.first->text, expected);
    config_arena_done(&arena);
}

static void names_what_an_editor_or_another_system_did(void **state)
{
    (void)state;
    assert_problem(SPAN("\xff\xfe[\0a\0]\0\n\0"), "the file is UTF-16; save it as UTF-8");
    assert_problem(SPAN("\xfe\xff\0[\0a\0]\0\n"), "the file is UTF-16; save it as UTF-8");
    assert_problem(SPAN("a = 1\0\nb\0\nc\0\n"), "the line has a NUL byte: this is not a text file");
    assert_problem(SPAN("[a]\rb = 1\r"),
                   "the line has a carriage return in it; end each line with a line feed");
    static const char odd[] = "the line has a no-break space (U+00A0); write a plain space";
    assert_problem(SPAN("\xc2\xa0[a]\n"), odd);
    assert_problem(SPAN("a\xc2\xa0= 1\n"), odd);
    assert_problem(SPAN("a =\xc2\xa0"
                        "1\n"),
                   odd);
    assert_problem(SPAN("a = 1\xc2\xa0\n"), odd);
    assert_calls(SPAN("a = x\xc2\xa0y\n"), "1{a=x\xc2\xa0y} ");
    assert_problem(SPAN("// a\n"), "a comment begins with # or ;");
    assert_problem(SPAN("/* a */\n"), "a comment begins with # or ;");
}

static void a_heading_without_brackets_is_reported_and_holds(void **state)
{
    (void)state;
    assert_problem(SPAN("site docs\n"),
                   "the heading of a section stands in brackets; write [site docs]");
    assert_calls(SPAN("server\na = 1\nsite b:\nc = 2\npath /d\n"),
                 "1[server] 2{a=1} 3[site b] 4{c=2} 5[path /d] 1! 3! 5! ");
    assert_calls(SPAN("server = 1\nsite = a\nserver a\nserver {\n"),
                 "1{server=1} 2{site=a} 3! 4! ");
}

static void limits_the_length_of_a_line(void **state)
{
    (void)state;
    static char text[10000];
    memset(text, 'v', sizeof(text));
    memcpy(text, "a=", 2);
    struct config_arena arena = { 0 };
    struct config_problems problems = { .arena = &arena };
    struct calls calls = { .len = 0 };
    struct config_file_handler handler = { &calls, on_section, on_setting };
    config_file_parse(span_of(text, 4000), "f", &handler, &problems);
    assert_int_equal(problems.error_count, 0);
    assert_int_equal(calls.len, strlen("1{a=} ") + 4000 - 2);
    config_file_parse(span_of(text, sizeof(text)), "f", &handler, &problems);
    assert_int_equal(problems.error_count, 1);
    config_arena_done(&arena);
}

static void loads_a_file_or_returns_the_error(void **state)
{
    (void)state;
    struct config_arena arena = { 0 };
    struct span text = SPAN("unwritten");
    assert_string_equal(config_file_load("/", false, &arena, &text), "Is a directory");
    assert_string_equal(config_file_load("/nowhere/at/all", false, &arena, &text),
                        "No such file or directory");
    assert_string_equal(config_file_load("/dev/zero", false, &arena, &text),
                        "it has more than 1 MiB");
    assert_non_null(config_file_load("/dev/null", true, &arena, &text));
    assert_true(span_equal(text, SPAN("unwritten")));
    assert_null(config_file_load("/dev/null", false, &arena, &text));
    assert_int_equal(text.len, 0);
    config_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_sections_and_settings_with_their_lines),
        cmocka_unit_test(indentation_is_free_and_no_line_continues_another),
        cmocka_unit_test(accepts_the_line_ends_and_byte_order_mark_of_other_systems),
        cmocka_unit_test(a_comment_has_its_own_line),
        cmocka_unit_test(reports_each_line_that_it_cannot_read),
        cmocka_unit_test(names_what_an_editor_or_another_system_did),
        cmocka_unit_test(a_heading_without_brackets_is_reported_and_holds),
        cmocka_unit_test(limits_the_length_of_a_line),
        cmocka_unit_test(loads_a_file_or_returns_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
