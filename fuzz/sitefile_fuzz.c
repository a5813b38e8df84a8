/* SPDX-License-Identifier: MIT
 *
 * A text as `_headers` and as `_redirects`. Whatever it is, the fields of each path fit into an
 * answer. A redirect stays in one line, and leads to the host of its target.
 */
#include "base/check.h"
#include "config/sitefile.h"
#include "location.h"
#include "rules/rules.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const struct rules *rules, struct span path)
{
    static char bytes[64 * 1024];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_match match;
    rules_find(rules, path, &match);
    rules_add_fields(rules, &match, false, &out);
    CHECK(!out.overflow && out.len <= rules_fields_most(rules));
    out.len = 0;
    if (!match.actor || match.actor->action == RULES_STATUS)
        return;
    if (match.actor->action == RULES_REDIRECT) {
        rules_target_add_location(&match.actor->target, &match.captures, false, SPAN(""), &out);
        check_location(&match.actor->target, buf_span(&out));
    } else {
        rules_target_add_path(&match.actor->target, &match.captures, &out);
        CHECK(span_starts(buf_span(&out), SPAN("/")));
    }
    CHECK(!out.overflow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct span paths[] = { SPAN("/"), SPAN("/a"), SPAN("/a/b.c"), SPAN("/a/\\/b\n"),
                                         SPAN("/a/b/c/d/e/f/g/h/i") };
    struct rules_rule own = { .action = RULES_SERVE };
    const struct rules base = { .rule = &own, .count = 1 };
    const struct config_site site = { .rules = &base, .hsts_s = CONFIG_NEVER };
    struct config_arena arena = { .blocks = NULL };
    struct config_problems problems = { .arena = &arena };
    const struct config_sitefile file = { "x", span_of((const char *)data, size) };
    const char *why;
    CHECK(rules_pattern_parse(SPAN("/**"), &own.pattern, &why));
    if (size > CONFIG_SITEFILE_BYTES_MAX / 8)
        return 0;
    const struct rules *rules = config_sitefile_rules(&site, &file, &file, &arena, &problems);
    CHECK(rules_fields_most(rules) <= CONFIG_HEADERS_MAX);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        check_path(rules, paths[i]);
    config_arena_done(&arena);
    return 0;
}
