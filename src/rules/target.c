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

/* `**` counts as one star. */
static unsigned count_stars(struct span text)
{
    unsigned stars = 0;
    for (size_t i = 0; i < text.len; i++)
        stars += text.at[i] == '*' && (i == 0 || text.at[i - 1] != '*');
    return stars;
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
    target.stars = count_stars(text);
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
    *ret_target =
        (struct rules_target){ .text = text, .path_end = text.len, .stars = count_stars(text) };
    return true;
}

/* ---- writing ---- */

/* The bytes that stand for themselves, besides letters and digits (RFC 3986 sections 3.3 and 3.4).
 * In a query, `&` and the like would separate its parts. */
static const char path_bytes[] = "-._~/!$&'()*+,;=:@";
static const char query_bytes[] = "-._~";

struct writer {
    struct buf *out;
    size_t least;      /* where the path begins in `out` */
    bool path;         /* slashes that meet become one */
    const char *plain; /* of the request's bytes; NULL: all */
    const struct rules_captures *captures;
    unsigned star; /* the next one */
};

static void add_byte(const struct writer *w, char c, bool plain)
{
    struct buf *out = w->out;
    const unsigned char byte = (unsigned char)c;
    const char escape[] = { '%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15] };

    if (w->path && c == '/' && out->len > w->least && out->at[out->len - 1] == '/')
        return;
    if (plain)
        buf_add_char(out, c);
    else
        buf_add(out, span_of(escape, sizeof(escape)));
}

/* Appends text of the target, with the parts of the request for its stars. The text is encoded
 * already, except for bytes that no URL has. */
static void add_text(struct writer *w, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.at[i];
        if (c != '*') {
            add_byte(w, c, w->plain == NULL || ((unsigned char)c < 0x7f));
            continue;
        }
        i += i + 1 < text.len && text.at[i + 1] == '*';
        const struct span part = w->captures->part[w->star++];
        for (size_t k = 0; k < part.len; k++)
            add_byte(w, part.at[k],
                     w->plain == NULL || is_alphanumeric(part.at[k]) ||
                         is_one_of(part.at[k], w->plain));
    }
}

void rules_target_add_location(const struct rules_target *target,
                               const struct rules_captures *captures, bool has_query,
                               struct span query, struct buf *out)
{
    const struct span text = target->text;
    struct writer w = { .out = out, .captures = captures, .plain = path_bytes, .path = true };

    buf_add(out, span_first(text, target->origin_len));
    w.least = out->len;
    add_text(&w, span_skip(span_first(text, target->path_end), target->origin_len));
    if (has_query && !target->has_query) {
        buf_add_char(out, '?');
        buf_add(out, query);
    }
    w.path = false;
    w.plain = query_bytes;
    add_text(&w, span_skip(text, target->path_end));
}

void rules_target_add_path(const struct rules_target *target, const struct rules_captures *captures,
                           struct buf *out)
{
    struct writer w = { .out = out, .least = out->len, .path = true, .captures = captures };
    add_text(&w, target->text);
}
