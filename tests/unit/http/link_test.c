/* SPDX-License-Identifier: MIT
 *
 * Links: where each ends, and which of them are hints.
 */
#include "http/link.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { LINKS_MAX = 3 };

static void gives_the_links_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        const char *links[LINKS_MAX];
    } rows[] = {
        { "", { NULL } },
        { " ,\t, ", { NULL } },
        { "</a>; rel=preload", { "</a>; rel=preload" } },
        { "</a>, </b>;as=style ,</c>", { "</a>", "</b>;as=style", "</c>" } },
        { "</a,b;c>; rel=preload, </d>", { "</a,b;c>; rel=preload", "</d>" } },
        { "</a\">; t=1, </d>", { "</a\">; t=1", "</d>" } },
        { "</a>; title=\"x, <y\", </d>", { "</a>; title=\"x, <y\"", "</d>" } },
        { "</a>; title=\"x\\\", y\", </d>", { "</a>; title=\"x\\\", y\"", "</d>" } },
        { "</a\\>, </d>", { "</a\\>", "</d>" } },
        { "</a, </d", { "</a, </d" } },
        { "</a>; title=\"x, </d>", { "</a>; title=\"x, </d>" } },
        { "</a>; title=\"x\\", { "</a>; title=\"x\\" } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        struct span link, field = guard_text(&guard, rows[i].field);
        for (size_t k = 0; k < LINKS_MAX && rows[i].links[k]; k++) {
            assert_true(http_link_next(&field, &link));
            if (!span_equal(link, span_text(rows[i].links[k])))
                fail_msg("`%s`: expected `%s`, got `%.*s`", rows[i].field, rows[i].links[k],
                         (int)link.len, link.at);
        }
        assert_false(http_link_next(&field, &link));
        guard_done(&guard);
    }
}

static void knows_the_relations_of_hints(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        bool is_hint;
    } rows[] = {
        { "</a>; rel=preload; as=style", true },
        { "</a>;as=style;REL=Preload", true },
        { "</a>; rel=\"preload\"", true },
        { "</a>; rel = \"nofollow  modulepreload\"", true },
        { "<https://a.example>; rel=preconnect; crossorigin", true },
        { "<https://a.example/x;y,z>; rel=preconnect", true },
        { "</a>; title=\"; rel=preload\"; rel=\"preconnect\"", true },
        { "</a>; rel=prefetch", false },
        { "</a>; rel=dns-prefetch", false },
        { "</a>; rel=preloaded", false },
        { "</a>; rel=prefetch; rel=preload", false },
        { "</a>; title=\"; rel=preload\"", false },
        { "</a>; relation=preload", false },
        { "</a>; rel", false },
        { "</a>; rel=", false },
        { "</a>; rel=\"", false },
        { "</a>", false },
        { "/a; rel=preload", false },
        { "<; rel=preload", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        if (http_link_is_hint(guard_text(&guard, rows[i].link)) != rows[i].is_hint)
            fail_msg("`%s`: expected %s", rows[i].link, rows[i].is_hint ? "a hint" : "no hint");
        guard_done(&guard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_links_in_order),
        cmocka_unit_test(knows_the_relations_of_hints),
    };
    return cmocka_run_group_tests_name("http/link", tests, NULL, NULL);
}
