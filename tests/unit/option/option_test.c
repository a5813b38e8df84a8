/* SPDX-License-Identifier: MIT
 *
 * Words of a command line become members of a struct, and help is printed from the same rows.
 */
#include "option/option.h"

#include "option/help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WORDS_MAX = 16 };

struct inner {
    unsigned count;
    uint64_t time_ns, longest_ns;
};

struct outer {
    bool quiet;
    const char *name, *file;
    struct option_list fields;
    struct inner inner;
    char read[64];
    struct option_list arguments;
};

static bool read_value(void *into, const struct option *option, const char *value,
                       struct option_refusal *refusal)
{
    struct outer *outer = into;
    if (strcmp(value, "bad") == 0)
        return option_refuse(refusal, "--%s: bad", option->name);
    (void)snprintf(outer->read, sizeof(outer->read), "%s=%s", option->name, value);
    return true;
}

static const struct option outer_rows[] = {
    { "quiet", 'q', NULL, "print nothing", OPTION_PRESENT, OPTION_INTO(outer, quiet) },
    { "name", 0, "NAME", "a name", OPTION_TEXT, OPTION_INTO(outer, name) },
    { "config", 'c', "FILE", "a file", OPTION_ONCE, OPTION_INTO(outer, file) },
    { "header", 'H', "FIELD", "a field; may be repeated", OPTION_LIST, OPTION_INTO(outer, fields) },
    { "read", 0, "TEXT", "a value", OPTION_READ, .read = read_value },
    { "switch", 0, "on|off", "a switch", OPTION_SWITCH, .read = read_value },
    { .name = NULL },
};

static const struct option inner_rows[] = {
    { "count", 'n', "N", "a number", OPTION_NUMBER, OPTION_INTO(inner, count), 1, 10 },
    { "time", 't', "TIME",
      "a time with a sentence that is long enough to go on in a second line of the help",
      OPTION_TIME, OPTION_INTO(inner, time_ns), UINT64_C(1000000), UINT64_C(60000000000) },
    { "limit", 0, "TIME", "a time", OPTION_TIME, OPTION_INTO(inner, longest_ns) },
    { .name = NULL },
};

static const struct option_group groups[] = {
    { .title = "One", .options = outer_rows },
    { .title = "Two", .options = inner_rows, .offset = offsetof(struct outer, inner) },
    { .options = option_answers },
    { .options = NULL },
};

static const struct option_elsewhere elsewhere[] = { { "--port", "use --name" },
                                                     { "-p", "use --name" },
                                                     { NULL, NULL } };

static const struct option foreign[] = { { .name = "listen", .placeholder = "ADDRESS" },
                                         { .name = NULL } };

static bool explain(struct span name, struct option_refusal *refusal)
{
    if (!span_equal(name, SPAN("labels")))
        return false;
    (void)option_refuse(refusal, "labels are names here; use --name");
    return true;
}

static const struct option_command command = {
    .name = "try",
    .explain = explain,
    .groups = groups,
    .elsewhere = elsewhere,
    .others = foreign,
    .arguments_offset = offsetof(struct outer, arguments),
    .arguments_most = 2,
};

/* Reads words that are divided by spaces. End with option_done. */
static enum option_result read_words(const char *text, struct outer *outer,
                                     struct option_refusal *refusal)
{
    static char storage[256];
    const char *words[WORDS_MAX + 1] = { NULL };
    (void)snprintf(storage, sizeof(storage), "%s", text);
    unsigned count = 0;
    for (char *rest = NULL, *word = strtok_r(storage, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    *outer = (struct outer){ 0 };
    *refusal = (struct option_refusal){ 0 };
    return option_read(&command, words, outer, refusal);
}

static void puts_each_value_into_its_member(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "-q --name x -c f -H a:1 --header=b:2 --count=7 --time 2s one --read v two",
        "one --time=2s -Ha:1 -n7 --read=v --name=old -cf --header b:2 two --name x --quiet",
        "--quiet --name x -c f -H a:1 -Hb:2 -n 7 -t2s --read v -- one two",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct outer outer;
        struct option_refusal refusal;
        if (read_words(lines[i], &outer, &refusal) != OPTION_GOOD)
            fail_msg("`%s`: %s", lines[i], refusal.text);
        assert_true(outer.quiet);
        assert_string_equal(outer.name, "x");
        assert_string_equal(outer.file, "f");
        assert_int_equal(outer.fields.count, 2);
        assert_string_equal(outer.fields.at[0], "a:1");
        assert_string_equal(outer.fields.at[1], "b:2");
        assert_int_equal(outer.inner.count, 7);
        assert_true(outer.inner.time_ns == UINT64_C(2000000000));
        assert_string_equal(outer.read, "read=v");
        assert_int_equal(outer.arguments.count, 2);
        assert_string_equal(outer.arguments.at[1], "two");
        option_done(&command, &outer);
    }
}

static void keeps_defaults_and_reads_switches(void **state)
{
    (void)state;
    struct outer outer;
    struct option_refusal refusal;
    static const char *const rows[][2] = {
        { "", "" },
        { "--switch", "switch=on" },
        { "--switch one", "switch=on" },
        { "--switch off one", "switch=off" },
        { "--switch=off", "switch=off" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(read_words(rows[i][0], &outer, &refusal), OPTION_GOOD);
        assert_string_equal(outer.read, rows[i][1]);
        assert_int_equal(outer.inner.count, 0);
        option_done(&command, &outer);
    }
}

static void refuses_a_mistake_with_a_cure(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "--nam x", "unknown option --nam; did you mean --name?" },
        { "-x", "unknown option -x; `weir help try` lists them" },
        { "--port=80", "there is no --port; use --name" },
        { "-p80", "there is no -p; use --name" },
        { "--listen 80", "`weir try` takes no --listen" },
        { "-limit 1s", "an option has two dashes; write --limit" },
        { "--no-switch", "there is no --no-switch; write --switch off" },
        { "--no-quiet", "unknown option --no-quiet; `weir help try` lists them" },
        { "--labels=x", "labels are names here; use --name" },
        { "--name", "--name needs a value: --name NAME" },
        { "-c", "-c needs a value: -c FILE" },
        { "-c a -c b", "-c is given twice; give it once" },
        { "--quiet=yes", "--quiet takes no value" },
        { "-qx", "-q takes no value" },
        { "--count 0", "--count: `0` is not a number from 1 to 10" },
        { "--count 4294967297", "--count: `4294967297` is not a number from 1 to 10" },
        { "--time 2", "--time: `2` has no unit; write 2s for seconds, or 2ms" },
        { "--time 2h", "--time: `2h` is not a time from 1.00 ms to 60.0 s" },
        { "--time x", "--time: `x` is not a time from 1.00 ms to 60.0 s" },
        { "--limit 1001h", "--limit: `1001h` is too long; the longest time is 1000h" },
        { "--limit 5000000h", "--limit: `5000000h` is too long; the longest time is 1000h" },
        { "--read bad", "--read: bad" },
        { "a b c", "`c` is one argument too many; `weir help try` explains" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outer outer;
        struct option_refusal refusal;
        assert_int_equal(read_words(rows[i][0], &outer, &refusal), OPTION_WRONG);
        assert_string_equal(refusal.text, rows[i][1]);
        option_done(&command, &outer);
    }
}

static void answers_questions_before_it_finds_mistakes(void **state)
{
    (void)state;
    struct outer outer;
    struct option_refusal refusal;
    assert_int_equal(read_words("--nonsense --help", &outer, &refusal), OPTION_ASKS_HELP);
    assert_int_equal(read_words("a b c -V", &outer, &refusal), OPTION_ASKS_VERSION);
    assert_int_equal(read_words("-- --help", &outer, &refusal), OPTION_GOOD);
    assert_string_equal(outer.arguments.at[0], "--help");
    option_done(&command, &outer);
    assert_int_equal(read_words("--name -- --help", &outer, &refusal), OPTION_ASKS_HELP);
    assert_int_equal(read_words("--name -- -V", &outer, &refusal), OPTION_ASKS_VERSION);
    assert_int_equal(read_words("--name -- --help=x", &outer, &refusal), OPTION_WRONG);
}

static void prints_help_from_the_rows(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    option_help_groups(out, groups);
    (void)fclose(out);
    assert_string_equal(text, "\nOne:\n"
                              "  -q, --quiet               print nothing\n"
                              "  --name NAME               a name\n"
                              "  -c, --config FILE         a file\n"
                              "  -H, --header FIELD        a field; may be repeated\n"
                              "  --read TEXT               a value\n"
                              "  --switch on|off           a switch\n"
                              "\nTwo:\n"
                              "  -n, --count N             a number\n"
                              "  -t, --time TIME           a time with a sentence that is long "
                              "enough to go on\n"
                              "                            in a second line of the help\n"
                              "  --limit TIME              a time\n"
                              "  -h, --help                print help and stop\n"
                              "  -V, --version             print the version and stop\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_each_value_into_its_member),
        cmocka_unit_test(keeps_defaults_and_reads_switches),
        cmocka_unit_test(refuses_a_mistake_with_a_cure),
        cmocka_unit_test(answers_questions_before_it_finds_mistakes),
        cmocka_unit_test(prints_help_from_the_rows),
    };
    return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
