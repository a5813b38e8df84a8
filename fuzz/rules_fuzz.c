/* SPDX-License-Identifier: MIT
 *
 * A pattern, a target and a path, each on a line of its own: whatever they are, a redirect stays in
 * one line and leads to the host of its target.
 */
#include "base/check.h"
#include "rules/rules.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span take_line(struct span *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->at, '\n', rest->len) : NULL;
    struct span line = span_first(*rest, end ? (size_t)(end - rest->at) : rest->len);
    *rest = span_skip(*rest, line.len + (end != NULL));
    return line;
}

static void check_location(const struct rules_target *target, struct span location)
{
    struct span rest = span_skip(location, target->origin_len);
    CHECK(span_equal(span_first(location, target->origin_len),
                     span_first(target->text, target->origin_len)));
    CHECK(rest.len == 0 || rest.at[0] == '/' || rest.at[0] == '?' || rest.at[0] == '#');
    CHECK(!span_starts(rest, SPAN("//")));
    for (size_t i = 0; i < location.len; i++)
        CHECK(location.at[i] > 0x20 && location.at[i] < 0x7f && location.at[i] != '\\');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[64 * 1024];
    struct span rest = span_of((const char *)data, size);
    struct rules_rule rule = { .action = RULES_REDIRECT };
    const struct rules rules = { .rule = &rule, .count = 1 };
    struct rules_match match;
    const char *reason;
    const struct span pattern = take_line(&rest), target = take_line(&rest);
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
