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

/* Adds the pieces of the text from `at` to `end`, and returns the number of stars between them. */
static unsigned add_pieces(struct rules_target *target, unsigned place, size_t at, size_t end)
{
    unsigned stars = 0;
    for (size_t begin = at;; stars++) {
        while (at < end && target->text.at[at] != '*')
            at++;
        if (place + stars < sizeof(target->piece) / sizeof(target->piece[0]))
            target->piece[place + stars] =
                (struct rules_target_piece){ (uint16_t)begin, (uint16_t)(at - begin) };
        if (at == end)
            return stars;
        at += star_len(span_skip(span_first(target->text, end), at));
        begin = at;
    }
}

/* Each star stands for the one at the same place of the pattern. */
static void set_stars(struct rules_target *target)
{
    const size_t begin = target->origin_len, end = target->path_end;
    target->path_stars = add_pieces(target, 0, begin, end);
    target->stars = target->path_stars +
                    add_pieces(target, target->path_stars + 1, end, target->text.len);
    for (unsigned i = 0; i < RULES_STARS_MAX; i++)
        target->star_of[i] = (uint8_t)i;
}

/* Whether no byte has to become an escape, and no slash of the path is dropped. */
static bool is_ready(const struct rules_target *target)
{
    for (size_t i = target->origin_len; i < target->text.len; i++) {
        const bool doubles = target->text.at[i] == '/' && i > target->origin_len &&
                             i < target->path_end && target->text.at[i - 1] == '/';
        if (doubles || (unsigned char)target->text.at[i] >= 0x7f)
            return false;
    }
    return true;
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
    target.is_ready = is_ready(&target);
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
    *ret_target = (struct rules_target){ .text = text, .path_end = text.len, .is_ready = true };
    set_stars(ret_target);
    return true;
}

/* ---- writing ---- */

/* Bytes that stand for themselves in a path and in a query (RFC 3986 sections 3.3 and 3.4). In a
 * query, `&` and the like would separate its parts. A slash of a path is no such byte: two that
 * meet become one. */
enum { IN_PATH = 1, IN_QUERY = 2, ANYWHERE = 4 };

static const unsigned char plain_in[256] = {
    ['0' ... '9'] = IN_PATH | IN_QUERY,
    ['A' ... 'Z'] = IN_PATH | IN_QUERY,
    ['a' ... 'z'] = IN_PATH | IN_QUERY,
    ['-'] = IN_PATH | IN_QUERY,
    ['.'] = IN_PATH | IN_QUERY,
    ['_'] = IN_PATH | IN_QUERY,
    ['~'] = IN_PATH | IN_QUERY,
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
};

/* Writes a byte that is not plain, and returns the place behind it. At most 3 bytes are written. */
static size_t write_other(const struct writer *w, char *at, size_t len, unsigned char c, bool own)
{
    static const char digits[] = "0123456789ABCDEF";

    if (c == '/' && w->path) {
        if (len == w->least || at[len - 1] != '/')
            at[len++] = '/';
    } else if (w->where == ANYWHERE || (own && c < 0x7f)) {
        at[len++] = (char)c;
    } else {
        at[len++] = '%';
        at[len++] = digits[c >> 4];
        at[len++] = digits[c & 15];
    }
    return len;
}

/* Appends bytes of the request, or `own` bytes of the target's text. Bytes that may not stand for
 * themselves become escapes. */
static void add_escaped(const struct writer *w, struct span text, bool own)
{
    enum { ESCAPE_BYTES = 3 };
    struct buf *out = w->out;
    char *const at = out->at;
    size_t len = out->len;
    const size_t most = out->size;
    const int where = w->where;

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.at[i];
        if (most - len < ESCAPE_BYTES) {
            out->overflow = true;
            break;
        }
        if (plain_in[c] & where)
            at[len++] = (char)c;
        else
            len = write_other(w, at, len, c, own);
    }
    out->len = len;
}

/* Appends a piece of the target. It is encoded already, except for bytes that no URL has. */
static void add_piece(const struct writer *w, struct rules_target_piece piece)
{
    struct span own = span_of(w->target->text.at + piece.at, piece.len);
    const struct buf *out = w->out;
    if (piece.len == 0)
        return;
    if (!w->target->is_ready) {
        add_escaped(w, own, true);
        return;
    }
    if (w->path && own.at[0] == '/' && out->len > w->least && out->at[out->len - 1] == '/')
        own = span_skip(own, 1);
    buf_add(w->out, own);
}

/* Appends the pieces from `first` on, with the parts of the request for the stars behind them. */
static void add_parts(const struct writer *w, unsigned first, unsigned star, unsigned end)
{
    const struct rules_target *target = w->target;
    add_piece(w, target->piece[first]);
    for (; star < end; star++) {
        add_escaped(w, w->captures->part[target->star_of[star]], false);
        add_piece(w, target->piece[++first]);
    }
}

void rules_target_add_location(const struct rules_target *target,
                               const struct rules_captures *captures, bool has_query,
                               struct span query, struct buf *out)
{
    struct writer w = {
        .out = out, .target = target, .captures = captures, .where = IN_PATH, .path = true
    };

    buf_add(out, span_first(target->text, target->origin_len));
    w.least = out->len;
    add_parts(&w, 0, 0, target->path_stars);
    if (has_query && !target->has_query) {
        buf_add_char(out, '?');
        buf_add(out, query);
    }
    if (target->path_end == target->text.len)
        return;
    w.path = false;
    w.where = IN_QUERY;
    add_parts(&w, target->path_stars + 1, target->path_stars, target->stars);
}

void rules_target_add_path(const struct rules_target *target, const struct rules_captures *captures,
                           struct buf *out)
{
    const struct writer w = {
        .out = out,
        .least = out->len,
        .target = target,
        .captures = captures,
        .where = ANYWHERE,
        .path = true,
    };
    add_parts(&w, 0, 0, target->path_stars);
}
