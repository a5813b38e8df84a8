/* SPDX-License-Identifier: MIT
 *
 * Values of Traceparent, well-formed and not.
 */
#include "http/traceparent.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define GOOD   "00-" TRACE "-" PARENT "-01"

static void reads_well_formed_values(void **state)
{
    (void)state;
    static const char *const good[] = { GOOD, "00-" TRACE "-" PARENT "-ff",
                                        "01-" TRACE "-" PARENT "-00",
                                        "fe-" TRACE "-" PARENT "-00-more, and \"more\"",
                                        "cc-" TRACE "-" PARENT "-00-" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct guard guard;
        const struct span value = guard_text(&guard, good[i]);
        const struct span read = http_traceparent_read(value);
        if (read.at != value.at || read.len != HTTP_TRACEPARENT_BYTES)
            fail_msg("`%s` is refused", good[i]);
        guard_done(&guard);
    }
}

static void ignores_other_values(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT "-0",
        "00-" TRACE "-" PARENT "-01-",
        "00-" TRACE "-" PARENT "-01 ",
        "01-" TRACE "-" PARENT "-01x",
        "ff-" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "-0g",
        "00-" TRACE "-" PARENT "_01",
        "0O-" TRACE "-" PARENT "-01",
        "00-0AF7651916cd43dd8448eb211c80319c-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00--af7651916cd43dd8448eb211c80319c-" PARENT "-01",
        "00-\"af7651916cd43dd8448eb211c80319c-" PARENT "-01",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct guard guard;
        if (http_traceparent_read(guard_text(&guard, bad[i])).len != 0)
            fail_msg("`%s` is accepted", bad[i]);
        guard_done(&guard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_well_formed_values),
        cmocka_unit_test(ignores_other_values),
    };
    return cmocka_run_group_tests_name("http/traceparent", tests, NULL, NULL);
}
