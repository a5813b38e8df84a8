/* SPDX-License-Identifier: MIT
 *
 * Where a rule leads: the target of a redirect or of a rewrite. A target is a text with stars, and
 * each star stands for what a star of the rule's pattern covers: that at the same place, unless the
 * caller chooses another.
 *
 *   a redirect leads to a path or to an http(s) URL, as it stands in a Location field
 *   a rewrite leads to a decoded path of the same site
 *
 * A path of a request cannot choose another host: stars stand only behind the host, what they cover
 * is percent-encoded, and slashes that meet become one.
 */
#pragma once

#include "base/buf.h"
#include "rules/pattern.h"

enum { RULES_TARGET_MAX = 1024 };

/* A part of a target's text that has no star. */
struct rules_target_piece {
    uint16_t at, len;
};

struct rules_target {
    struct span text;  /* borrowed from the caller */
    size_t origin_len; /* bytes of scheme and host; 0: a path of the same host */
    size_t path_end;   /* where the path ends in `text`: at the query, the fragment or the end */
    bool has_query;
    bool is_ready; /* `text` is sent as it stands; otherwise some of its bytes become escapes */
    unsigned stars;
    unsigned path_stars; /* of them: before path_end */
    /* The text between the stars: path_stars + 1 pieces up to path_end, then those behind it. Only
     * of a target with at most RULES_STARS_MAX stars. */
    struct rules_target_piece piece[RULES_STARS_MAX + 2];
    uint8_t star_of[RULES_STARS_MAX]; /* the place of the pattern's star that each star stands for:
                                         the same, unless the caller sets another */
};

/* Read a target. On failure they return false, and *ret_reason is the rest of a sentence that
 * begins with the target. */
MUST_USE bool rules_target_parse_redirect(struct span text, struct rules_target *ret_target,
                                          const char **ret_reason);
MUST_USE bool rules_target_parse_rewrite(struct span text, struct rules_target *ret_target,
                                         const char **ret_reason);

/* Appends the target of a redirect as the value of a Location field (RFC 9110 section 10.2.2). The
 * query of the request is kept if the target has none. `captures` has a part for each star. */
void rules_target_add_location(const struct rules_target *target,
                               const struct rules_captures *captures, bool has_query,
                               struct span query, struct buf *out);

/* Appends the decoded path of a target without scheme and host, up to its query or fragment. It
 * begins with one slash, and is not normalised: a part may make a segment `.` or `..` together with
 * the text around it. */
void rules_target_add_path(const struct rules_target *target, const struct rules_captures *captures,
                           struct buf *out);
