/* SPDX-License-Identifier: MIT
 *
 * Which of the two text formats an Accept field asks for. The rest of the answers is
 * tested from outside, in tests/e2e/test_page.py.
 */
#include "page/answer.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void gives_openmetrics_to_who_prefers_it(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        bool open;
    } rows[] = {
        { "", false },
        { "*/*", false },
        { "text/plain", false },
        { "text/html, application/xhtml+xml, */*;q=0.8", false },
        { "application/openmetrics-text", true },
        { "Application/OpenMetrics-Text; version=1.0.0", true },
        { "application/openmetrics-text; version=1.0.0; charset=utf-8", true },
        { "application/openmetrics-text; version=0.0.1", false },
        { "application/openmetrics-text; version=2.0.0, text/plain", false },
        { "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.5",
          true },
        { "application/openmetrics-text;q=0.3, text/plain;version=0.0.4;q=0.5", false },
        { "application/openmetrics-text;q=0", false },
        { "application/openmetrics-text;q=0.5, */*;q=0.1", true },
        { "application/openmetrics-text;q=0.5;version=1.0.0,application/openmetrics-text;version="
          "0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
          true },
        { "application/*", true },
        { ";,;q=,=", false },
        { "application/openmetrics-text;", true },
        { "application/openmetrics-text;q=nonsense", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        bool open = page_answer_is_openmetrics(guard_text(&guard, rows[i].accept));
        guard_done(&guard);
        if (open != rows[i].open)
            fail_msg("`%s`", rows[i].accept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gives_openmetrics_to_who_prefers_it) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
