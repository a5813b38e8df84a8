/* SPDX-License-Identifier: MIT
 *
 * The input is a pattern, a target and a path, each on a line of its own. With any of them, a
 * redirect stays in one line and leads to the host of its target.
 */
#include "location.h"
#include "rules/rules.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[64 * 1024];
    struct span rest = span_of((const char *)data, size);
    struct rules_rule rule = { .action = RULES_REDIRECT };
    const struct rules rules = { .rule = &rule, .count = 1 };
    struct rules_match match;
    const char *reason;
    const struct span pattern = span_take(&rest, '\n'), target = span_take(&rest, '\n');
    if (size > 8 * 1024 || !rules_pattern_parse(pattern, &rule.pattern, &reason))
        return 0;
    rules_find(&rules, rest, &match);
    if (!match.actor || !rules_target_parse_redirect(target, &rule.target, &reason) ||
        rule.target.stars > rule.pattern.stars)
        return 0;
    struct buf out = buf_over(bytes, sizeof(bytes));
    rules_target_add_location(&rule.target, &match.captures, false, SPAN(""), &out);
    CHECK(!out.overflow);
    check_location(&rule.target, buf_span(&out));
    return 0;
}
