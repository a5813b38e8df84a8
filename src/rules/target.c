/* SPDX-License-Identifier: MIT */
#include "rules/target.h"

static bool refuse_target(const char **ret_reason, const char *reason)
{
    *ret_reason = reason;
    return false;
}

static bool is_alphanumeric(char c)
{
    c = ascii_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_one_of(char c, const char *some)
{
    for (; *some; some++)
        if (c == *some)
            return true;
    return false;
}

/* ---- reading ---- */

/* Two stars side by side are one `**`. Four are two of them. */
static size_t star_len(struct span at_star)
{
    return span_starts(at_star, SPAN("**")) ? 2 : 1;
}

static unsigned count_stars(struct span text)
{
    unsigned stars = 0;
    for (size_t i = 0; i < text.len;) {
        const bool star = text.at[i] == '*';
        stars += star;
        i += star ? star_len(span_skip(text, i)) : 1;
    }
    return stars;
}

/* Each star stands for the one at the same place of the pattern. */
static void set_stars(struct rules_target *target)
{
    target->stars = count_stars(target->text);
    for (unsigned i = 0; i < RULES_STARS_MAX; i++)
        target->star_of[i] = (uint8_t)i;
}

static bool has_dot_segment(struct span path)
{
    while (path.len > 0) {
        const char *slash = memchr(path.at, '/', path.len);
        struct span segment = span_first(path, slash ? (size_t)(slash - path.at) : path.len);
        if (span_equal(segment, SPAN(".")) || span_equal(segment, SPAN("..")))
            return true;
        path = span_skip(path, segment.len + (slash != NULL));
    }
    return false;
}

/* The length of `https://host:port` at the front, or 0. */
static size_t measure_origin(struct span text)
{
    static const struct span schemes[] = { SPAN("http://"), SPAN("https://") };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = schemes[i].len;
        if (!span_equal_nocase(span_first(text, len), schemes[i]))
            continue;
        while (len < text.len &&
               (is_alphanumeric(text.at[len]) || is_one_of(text.at[len], "-._:[]")))
            len++;
        return len > schemes[i].len ? len : 0;
    }
    return 0;
}

static int hex_value(char c)
{
    c = ascii_lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool bytes_are_good(struct span text, const char **ret_reason)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= 0x20 || c == 0x7f)
            return refuse_target(ret_reason, "has a space or a control byte; write %20 for a "
                                             "space");
        if (c == '\\')
            return refuse_target(ret_reason, "has a backslash, which browsers take for a slash; "
                                             "write %5C");
        if (c == '%' &&
            (text.len - i < 3 || hex_value(text.at[i + 1]) < 0 || hex_value(text.at[i + 2]) < 0))
            return refuse_target(ret_reason, "has a `%` without two hexadecimal digits; write %25");
    }
    return true;
}

bool rules_target_parse_redirect(struct span text, struct rules_target *ret_target,
                                 const char **ret_reason)
{
    struct rules_target target = { .text = text, .origin_len = measure_origin(text) };

    if (text.len > RULES_TARGET_MAX)
        return refuse_target(ret_reason, "has more than 1024 bytes");
    if (!bytes_are_good(text, ret_reason))
        return false;
    const struct span rest = span_skip(text, target.origin_len);
    if (target.origin_len == 0 && !span_starts(text, SPAN("/")))
        return refuse_target(ret_reason, "is neither a path nor a URL; write /new or "
                                         "https://example.org/new");
    if (span_starts(rest, SPAN("//")))
        return refuse_target(ret_reason, target.origin_len > 0
                                             ? "has two slashes side by side"
                                             : "names another host; write https:// before it, or "
                                               "one slash for a path");
    if (rest.len > 0 && !is_one_of(rest.at[0], "/?#"))
        return refuse_target(ret_reason, "has a host that is not one; a host has letters, digits, "
                                         "`-` and `.`, and no star");
    target.path_end = text.len;
    for (size_t i = text.len; i-- > target.origin_len;)
        if (text.at[i] == '?' || text.at[i] == '#')
            target.path_end = i;
    target.has_query = target.path_end < text.len && text.at[target.path_end] == '?';
    set_stars(&target);
    *ret_target = target;
    return true;
}

bool rules_target_parse_rewrite(struct span text, struct rules_target *ret_target,
                                const char **ret_reason)
{
    if (text.len > RULES_TARGET_MAX)
        return refuse_target(ret_reason, "has more than 1024 bytes");
    if (!span_starts(text, SPAN("/")))
        return refuse_target(ret_reason,
                             "does not begin with a slash; a rewrite leads to a path of "
                             "the same site");
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return refuse_target(ret_reason, "has a control byte");
        if (text.at[i] == '?')
            return refuse_target(ret_reason, "has a query; a rewrite leads to a file");
        if (text.at[i] == '/' && i > 0 && text.at[i - 1] == '/')
            return refuse_target(ret_reason, "has two slashes side by side");
    }
    if (has_dot_segment(text))
        return refuse_target(ret_reason, "has a segment `.` or `..`");
    *ret_target = (struct rules_target){ .text = text, .path_end = text.len };
    set_stars(ret_target);
    return true;
}

/* ---- writing ---- */

/* Bytes that stand for themselves in a path and in a query (RFC 3986 sections 3.3 and 3.4). In a
 * query, `&` and the like would separate its parts. */
enum { IN_PATH = 1, IN_QUERY = 2, ANYWHERE = 4 };

static const unsigned char plain_in[256] = {
    ['0' ... '9'] = IN_PATH | IN_QUERY,
    ['A' ... 'Z'] = IN_PATH | IN_QUERY,
    ['a' ... 'z'] = IN_PATH | IN_QUERY,
    ['-'] = IN_PATH | IN_QUERY,
    ['.'] = IN_PATH | IN_QUERY,
    ['_'] = IN_PATH | IN_QUERY,
    ['~'] = IN_PATH | IN_QUERY,
    ['/'] = IN_PATH,
    ['!'] = IN_PATH,
    ['$'] = IN_PATH,
    ['&'] = IN_PATH,
    ['\''] = IN_PATH,
    ['('] = IN_PATH,
    [')'] = IN_PATH,
    ['*'] = IN_PATH,
    ['+'] = IN_PATH,
    [','] = IN_PATH,
    [';'] = IN_PATH,
    ['='] = IN_PATH,
    [':'] = IN_PATH,
    ['@'] = IN_PATH,
};

struct writer {
    struct buf *out;
    size_t least; /* where the path begins in `out` */
    bool path;    /* slashes that meet become one */
    int where;    /* which bytes of the request are plain */
    const struct rules_target *target;
    const struct rules_captures *captures;
    unsigned star; /* the next one of the target */
};

/* Appends bytes of the target's own text, or bytes of the request. Bytes that may not stand for
 * themselves become escapes. */
static void add_bytes(const struct writer *w, struct span text, bool all_plain, bool own)
{
    enum { ESCAPE_BYTES = 3 };
    static const char digits[] = "0123456789ABCDEF";
    struct buf *out = w->out;
    char *at = out->at;
    size_t len = out->len;
    const size_t most = out->size;
    const bool fits = text.len <= (most - len) / ESCAPE_BYTES;

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.at[i];
        if (c == '/' && w->path && len > w->least && at[len - 1] == '/')
            continue;
        if (!fits && most - len < ESCAPE_BYTES) {
            out->overflow = true;
            break;
        }
        if (all_plain || (own ? c < 0x7f : (plain_in[c] & w->where) != 0)) {
            at[len++] = (char)c;
            continue;
        }
        at[len++] = '%';
        at[len++] = digits[c >> 4];
        at[len++] = digits[c & 15];
    }
    out->len = len;
}

/* Appends text of the target, with the parts of the request for its stars. The text is encoded
 * already, except for bytes that no URL has. */
static void add_text(struct writer *w, struct span text)
{
    const bool all_plain = w->where == ANYWHERE;

    while (text.len > 0) {
        const char *star = memchr(text.at, '*', text.len);
        const struct span own = span_first(text, star ? (size_t)(star - text.at) : text.len);
        add_bytes(w, own, all_plain, true);
        text = span_skip(text, own.len);
        if (text.len == 0)
            break;
        text = span_skip(text, star_len(text));
        add_bytes(w, w->captures->part[w->target->star_of[w->star++]], all_plain, false);
    }
}

void rules_target_add_location(const struct rules_target *target,
                               const struct rules_captures *captures, bool has_query,
                               struct span query, struct buf *out)
{
    const struct span text = target->text;
    struct writer w = {
        .out = out, .target = target, .captures = captures, .where = IN_PATH, .path = true
    };

    buf_add(out, span_first(text, target->origin_len));
    w.least = out->len;
    add_text(&w, span_skip(span_first(text, target->path_end), target->origin_len));
    if (has_query && !target->has_query) {
        buf_add_char(out, '?');
        buf_add(out, query);
    }
    w.path = false;
    w.where = IN_QUERY;
    add_text(&w, span_skip(text, target->path_end));
}

void rules_target_add_path(const struct rules_target *target, const struct rules_captures *captures,
                           struct buf *out)
{
    struct writer w = {
        .out = out, .target = target, .captures = captures, .where = ANYWHERE, .path = true
    };

    w.least = out->len;
    add_text(&w, target->text);
}
