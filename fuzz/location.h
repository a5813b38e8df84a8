/* SPDX-License-Identifier: MIT
 *
 * The properties of the target of every redirect that rules write.
 */
#pragma once

#include "base/check.h"
#include "rules/target.h"

/* Ends the process if the redirect leaves its line, or the host of its target. */
static inline void check_location(const struct rules_target *target, struct span location)
{
    struct span rest = span_skip(location, target->origin_len);
    CHECK(span_equal(span_first(location, target->origin_len),
                     span_first(target->text, target->origin_len)));
    CHECK(rest.len == 0 || rest.at[0] == '/' || rest.at[0] == '?' || rest.at[0] == '#');
    CHECK(!span_starts(rest, SPAN("//")));
    for (size_t i = 0; i < location.len; i++)
        CHECK(location.at[i] > 0x20 && location.at[i] < 0x7f && location.at[i] != '\\');
}
