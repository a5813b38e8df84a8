/* SPDX-License-Identifier: MIT
 *
 * Matching walks along pattern and path once. At a difference it returns to the last `*`, which
 * then covers one byte more, or else to the last `**`, which then covers one segment more. Earlier
 * stars never need another try: the later star covers whatever they could leave.
 */
#include "rules/pattern.h"

/* A `**` is matched together with the slash before it, so it covers nothing, or slashes with the
 * segments behind them. */
static const struct span deep = SPAN("/**");

static bool refuse_pattern(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return false;
}

static bool has_double_star(struct span segment)
{
    for (size_t i = 1; i < segment.len; i++)
        if (segment.at[i - 1] == '*' && segment.at[i] == '*')
            return true;
    return false;
}

static bool segment_is_good(struct span segment, bool last, const char **ret_reason)
{
    if (segment.len == 0 && !last)
        return refuse_pattern(ret_reason, "has two slashes side by side, which no path has");
    if (span_equal(segment, SPAN(".")) || span_equal(segment, SPAN("..")))
        return refuse_pattern(ret_reason, "has a segment `.` or `..`, which no path has");
    if (segment.len > 2 && has_double_star(segment))
        return refuse_pattern(ret_reason, "has a `**` that is not a whole segment; write `/**/` or "
                                          "a single star");
    return true;
}

bool rules_pattern_parse(struct span text, struct rules_pattern *ret_pattern,
                         const char **ret_reason)
{
    struct rules_pattern pattern = { .text = text, .literal_len = text.len };

    if (text.len == 0)
        return refuse_pattern(ret_reason, "is missing; write one, such as `/folder/**`");
    if (text.at[0] != '/')
        return refuse_pattern(ret_reason, "does not begin with a slash; for any folder write "
                                          "`/**/` before the name");
    if (text.len > RULES_PATTERN_MAX)
        return refuse_pattern(ret_reason, "has more than 1024 bytes");
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return refuse_pattern(ret_reason, "has a control byte, which no path has");
        if (text.at[i] != '*' || (i > 0 && text.at[i - 1] == '*'))
            continue;
        if (pattern.stars == 0)
            pattern.literal_len = i;
        pattern.stars++;
    }
    if (pattern.stars > RULES_STARS_MAX)
        return refuse_pattern(ret_reason, "has more than 8 stars");
    for (struct span rest = span_skip(text, 1);;) {
        const char *slash = rest.len > 0 ? memchr(rest.at, '/', rest.len) : NULL;
        struct span segment = span_first(rest, slash ? (size_t)(slash - rest.at) : rest.len);
        if (!segment_is_good(segment, !slash, ret_reason))
            return false;
        if (!slash)
            break;
        rest = span_skip(rest, segment.len + 1);
    }
    /* The slash before a `**` belongs to it. */
    if (span_starts(span_skip(text, pattern.literal_len), SPAN("**")))
        pattern.literal_len--;
    const char ones[sizeof(pattern.mask)] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    const struct span literal = span_first(text, pattern.literal_len);
    pattern.head = rules_pattern_head(literal);
    pattern.mask = rules_pattern_head(span_first(span_of(ones, sizeof(ones)), literal.len));
    const struct span star = span_skip(text, pattern.literal_len);
    if (pattern.stars == 0)
        pattern.form = RULES_PATTERN_PLAIN;
    else if (pattern.stars == 1 && star.at[0] == '*')
        pattern.form = RULES_PATTERN_STAR;
    else if (pattern.stars == 1 && span_equal(star, deep))
        pattern.form = RULES_PATTERN_DEEP;
    *ret_pattern = pattern;
    return true;
}

/* Where matching continues after a difference. */
struct retry {
    bool is_set;
    size_t pattern_at; /* behind the star */
    size_t path_at;    /* behind what the star covers now */
    unsigned star;
};

struct walk {
    struct span pattern, path;
    size_t pattern_at, path_at;
    unsigned star; /* the next one */
    struct retry single, whole;
    size_t begin[RULES_STARS_MAX], end[RULES_STARS_MAX]; /* in `path` */
};

static struct retry enter_star(struct walk *w, size_t len)
{
    w->pattern_at += len;
    w->begin[w->star] = w->end[w->star] = w->path_at;
    return (struct retry){ true, w->pattern_at, w->path_at, w->star++ };
}

/* Takes one star or one byte. False at a difference. */
static bool walk_on(struct walk *w)
{
    const struct span rest = span_skip(w->pattern, w->pattern_at);
    const bool at_end = w->path_at == w->path.len;

    if (span_starts(rest, deep)) {
        if (!at_end && w->path.at[w->path_at] != '/')
            return false;
        w->whole = enter_star(w, deep.len);
        w->single.is_set = false;
        if (rest.len == deep.len) /* the end of the pattern: all that is left */
            w->path_at = w->end[w->whole.star] = w->path.len;
        return true;
    }
    if (rest.len > 0 && rest.at[0] == '*') {
        w->single = enter_star(w, 1);
        return true;
    }
    if (rest.len == 0 || at_end || rest.at[0] != w->path.at[w->path_at])
        return false;
    w->pattern_at++;
    w->path_at++;
    return true;
}

static bool widen(struct walk *w, struct retry *retry, size_t path_at)
{
    retry->path_at = w->path_at = w->end[retry->star] = path_at;
    w->pattern_at = retry->pattern_at;
    w->star = retry->star + 1;
    return true;
}

/* Lets the last star cover more. False: no star can. */
static bool walk_back(struct walk *w)
{
    struct retry *single = &w->single, *whole = &w->whole;
    size_t at = single->path_at;

    if (single->is_set && at < w->path.len && w->path.at[at] != '/')
        return widen(w, single, at + 1);
    single->is_set = false;
    at = whole->path_at;
    if (!whole->is_set || at == w->path.len || w->path.at[at] != '/')
        return false;
    do
        at++;
    while (at < w->path.len && w->path.at[at] != '/');
    return widen(w, whole, at);
}

static void keep_captures(const struct walk *w, struct rules_captures *ret_captures)
{
    for (unsigned i = 0; i < w->star; i++) {
        struct span part = span_of(w->path.at + w->begin[i], w->end[i] - w->begin[i]);
        /* Only the part of a `**` can begin with a slash. */
        ret_captures->part[i] = span_starts(part, SPAN("/")) ? span_skip(part, 1) : part;
    }
}

/* `rest` is behind the literal bytes. `end` is the pattern behind its only star. */
static bool star_covers(struct span end, struct span rest, struct span *ret_part)
{
    if (rest.len < end.len || (end.len > 0 && !span_ends(rest, end)))
        return false;
    *ret_part = span_first(rest, rest.len - end.len);
    return ret_part->len == 0 || !memchr(ret_part->at, '/', ret_part->len);
}

static bool walk_covers(const struct rules_pattern *pattern, struct span path,
                        struct rules_captures *ret_captures)
{
    struct walk w = {
        .pattern = pattern->text,
        .path = path,
        .pattern_at = pattern->literal_len,
        .path_at = pattern->literal_len,
    };
    while (w.pattern_at < w.pattern.len || w.path_at < w.path.len)
        if (!walk_on(&w) && !walk_back(&w))
            return false;
    keep_captures(&w, ret_captures);
    return true;
}

/* Whether the stars that have to be filled cover a byte at least. */
static bool are_filled(const struct rules_pattern *pattern, const struct rules_captures *captures)
{
    for (unsigned i = 0; pattern->filled >> i != 0; i++)
        if ((pattern->filled >> i & 1) != 0 && captures->part[i].len == 0)
            return false;
    return true;
}

static inline bool form_covers(const struct rules_pattern *pattern, struct span path,
                               struct rules_captures *ret_captures)
{
    const size_t len = pattern->literal_len;
    const struct span rest = span_skip(path, len);
    switch (pattern->form) {
    case RULES_PATTERN_PLAIN:
        return rest.len == 0;
    case RULES_PATTERN_STAR:
        return star_covers(span_skip(pattern->text, len + 1), rest, &ret_captures->part[0]);
    case RULES_PATTERN_DEEP:
        ret_captures->part[0] = rest.len > 0 ? span_skip(rest, 1) : rest;
        return rest.len == 0 || rest.at[0] == '/';
    case RULES_PATTERN_ANY:
        break;
    }
    return walk_covers(pattern, path, ret_captures);
}

bool rules_pattern_matches_rest(const struct rules_pattern *pattern, struct span path,
                                struct rules_captures *ret_captures)
{
    const struct span literal = span_first(pattern->text, pattern->literal_len);
    return (literal.len <= sizeof(pattern->head) || span_starts(path, literal)) &&
           form_covers(pattern, path, ret_captures) &&
           (pattern->filled == 0 || are_filled(pattern, ret_captures));
}

bool rules_pattern_matches(const struct rules_pattern *pattern, struct span path,
                           struct rules_captures *ret_captures)
{
    return ((rules_pattern_head(path) ^ pattern->head) & pattern->mask) == 0 &&
           rules_pattern_matches_rest(pattern, path, ret_captures);
}
