/* SPDX-License-Identifier: MIT
 *
 * How the paths of two patterns relate. The configuration is checked with it: a rule that hides
 * another one, and two rules for the same path, are reported at the load. No request needs it.
 */
#pragma once

#include "rules/pattern.h"

/* Whether `wide` covers all paths of `narrow`. True is certain. False is returned for a few pairs
 * of patterns with several stars, too, where only a search through all paths would know. */
bool rules_relation_covers(const struct rules_pattern *wide, const struct rules_pattern *narrow);

/* Whether some path is covered by both patterns. */
bool rules_relation_meets(const struct rules_pattern *a, const struct rules_pattern *b);
