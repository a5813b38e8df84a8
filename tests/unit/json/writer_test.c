/* SPDX-License-Identifier: MIT */
#include "json/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *written;
static size_t written_len;

static struct json_writer open_object(void)
{
    FILE *out = open_memstream(&written, &written_len);
    assert_non_null(out);
    return json_writer_open(out, '{');
}

/* Ends it, and looks at all of it. */
static void assert_written(struct json_writer *list, const char *expected)
{
    json_writer_end(list, '}');
    assert_int_equal(fclose(list->out), 0);
    assert_string_equal(written, expected);
    free(written);
}

static void separates_members_of_every_kind(void **state)
{
    (void)state;
    struct json_writer top = open_object();
    json_writer_add_text(&top, "a", "x");
    json_writer_add_number(&top, "b", UINT64_MAX);
    json_writer_add_seconds(&top, "c", 1000000007);
    json_writer_add_bool(&top, "d", true);
    json_writer_add_null(&top, "e");
    struct json_writer array = json_writer_begin(&top, "f", '[');
    json_writer_add_bool(&array, NULL, false);
    struct json_writer empty = json_writer_begin(&array, NULL, '{');
    json_writer_end(&empty, '}');
    json_writer_end(&array, ']');
    assert_written(&top, "{\"a\":\"x\",\"b\":18446744073709551615,\"c\":1.000000007,\"d\":true,"
                         "\"e\":null,\"f\":[false,{}]}");
}

static void writes_null_for_a_number_that_json_lacks(void **state)
{
    (void)state;
    struct json_writer top = open_object();
    json_writer_add_real(&top, "a", 0.5);
    json_writer_add_real(&top, "b", (double)INFINITY);
    json_writer_add_real(&top, "c", (double)NAN);
    assert_written(&top, "{\"a\":0.5,\"b\":null,\"c\":null}");
}

static void escapes_quotes_and_control_bytes(void **state)
{
    (void)state;
    struct json_writer top = open_object();
    json_writer_add_text(&top, "a", "\"\\\n\xff");
    assert_written(&top, "{\"a\":\"\\u0022\\u005c\\u000a\\u00ff\"}");
}

static void splits_a_long_text_between_characters(void **state)
{
    (void)state;
    for (size_t before = 100; before < 140; before++) {
        char text[256], expected[300];
        memset(text, 'x', before);
        strcpy(text + before, "\xf0\x9f\x8c\x8a\xe2\x82\xac end");
        snprintf(expected, sizeof(expected), "{\"a\":\"%s\"}", text);
        struct json_writer top = open_object();
        json_writer_add_text(&top, "a", text);
        assert_written(&top, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separates_members_of_every_kind),
        cmocka_unit_test(writes_null_for_a_number_that_json_lacks),
        cmocka_unit_test(escapes_quotes_and_control_bytes),
        cmocka_unit_test(splits_a_long_text_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
