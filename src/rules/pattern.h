/* SPDX-License-Identifier: MIT
 *
 * Patterns of paths. A pattern is a path with stars:
 *
 *   *    any bytes except a slash, or none
 *   **   a whole segment of the pattern: any number of whole segments, or none
 *
 * So `/docs/` followed by `**` covers `/docs`, `/docs/` and everything below. A path is decoded and
 * normalised before it is matched (http/target.h), so one path has one spelling. Case matters.
 *
 * A pattern knows paths only: no query, host, method or file.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum { RULES_PATTERN_MAX = 1024, RULES_STARS_MAX = 8 };

/* Forms that need no search. */
enum rules_pattern_form {
    RULES_PATTERN_ANY,   /* none of the following */
    RULES_PATTERN_PLAIN, /* /a: no star */
    RULES_PATTERN_STAR,  /* one `*`, between the literal bytes and a text that may be empty */
    RULES_PATTERN_DEEP   /* one `**`, at the end */
};

struct rules_pattern {
    struct span text;    /* borrowed from the caller */
    size_t literal_len;  /* bytes before the first star */
    uint64_t head, mask; /* the first 8 of these bytes, as rules_pattern_head gives them */
    unsigned stars;      /* `**` is one of them */
    uint8_t filled;      /* bit 1 << place: this star covers a byte at least; the caller sets it */
    enum rules_pattern_form form;
};

/* The parts of a path that the stars of a pattern cover, in order. They borrow the path. The part
 * of a `**` has no slash at its front. */
struct rules_captures {
    struct span part[RULES_STARS_MAX];
};

/* Reads a pattern. On failure returns false, and *ret_reason is the rest of a sentence that begins
 * with the pattern. */
MUST_USE bool rules_pattern_parse(struct span text, struct rules_pattern *ret_pattern,
                                  const char **ret_reason);

/* The first 8 bytes of a path. A pattern with `(head ^ pattern->head) & pattern->mask` does not
 * cover the path. This test costs less than the search. */
static inline uint64_t rules_pattern_head(struct span path)
{
    uint64_t head = 0;
    if (path.len > 0)
        memcpy(&head, path.at, path.len < sizeof(head) ? path.len : sizeof(head));
    return head;
}

/* Whether the pattern covers the whole path. Each star covers as little as possible, and a star
 * that has to be filled covers a byte at least. Then *ret_captures has a part for each star. `/`
 * followed by `**` covers the empty path, too. The time is at most in proportion to the length of
 * the path times that of the pattern. */
bool rules_pattern_matches(const struct rules_pattern *pattern, struct span path,
                           struct rules_captures *ret_captures);

/* The same, if the test with rules_pattern_head has not excluded the pattern. */
bool rules_pattern_matches_rest(const struct rules_pattern *pattern, struct span path,
                                struct rules_captures *ret_captures);
