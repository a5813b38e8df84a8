/* SPDX-License-Identifier: MIT
 *
 * The table of what has changed between two views.
 */
#include "view/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct stats_snapshot earlier, now;

/* The table of the second between the two. The caller frees it. */
static char *print_difference(void)
{
    const struct view before = { .snapshot = &earlier, .read_ns = UINT64_C(1000000000) };
    const struct view view = { .snapshot = &now, .read_ns = UINT64_C(2000000000) };
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    view_print_difference(&view, &before, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void every_counter_that_rises_has_a_line(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STATS_COUNTERS; i++)
        earlier.counter[i] = now.counter[i] = 1000;
    for (unsigned i = 0; i < STATS_COUNTERS; i++) {
        now.counter[i] += 7;
        char *text = print_difference();
        if (strstr(text, "nothing has changed"))
            fail_msg("counter %u is missing in %s", i, text);
        free(text);
        now.counter[i] -= 7;
    }
}

static void causes_are_named(void **state)
{
    (void)state;
    memset(&earlier, 0, sizeof(earlier));
    now = earlier;
    now.counter[STATS_UNREADABLE_FIRST + stats_counters_status_place(400)] = 3;
    now.counter[STATS_HTTP2_FAULT_FIRST] = 4;
    char *text = print_difference();
    assert_non_null(strstr(text, "\nOf these, to requests that could not be read\n  400 "));
    assert_non_null(strstr(text, "\nHTTP/2 connections ended and streams reset, by cause\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_counter_that_rises_has_a_line),
        cmocka_unit_test(causes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
