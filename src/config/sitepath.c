/* SPDX-License-Identifier: MIT
 *
 * A `*` covers slashes, too, and a star of a pattern does not. So one `*` may become two stars, and
 * then no target can use it: none of the two covers the same bytes.
 */
#include "config/sitepath.h"

#include "base/buf.h"
#include "base/num.h"

static const struct span splat = SPAN("splat");

static bool is_letter(char c)
{
    c = ascii_lower(c);
    return c >= 'a' && c <= 'z';
}

static bool is_of_name(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

/* The name behind the colon at the front, or an empty span. */
static struct span placeholder_name(struct span text)
{
    size_t len = 1;
    if (text.len < 2 || !is_letter(text.at[1]))
        return SPAN("");
    while (len < text.len && is_of_name(text.at[len]))
        len++;
    return span_skip(span_first(text, len), 1);
}

/* The byte that the escape at the front stands for, or -1. */
static int read_escape(struct span text)
{
    if (text.len < 3 || num_hex_digit(text.at[1]) < 0 || num_hex_digit(text.at[2]) < 0)
        return -1;
    return num_hex_digit(text.at[1]) * 16 + num_hex_digit(text.at[2]);
}

/* The place of the star of a name, or -1. */
static int find_star(const struct config_sitepath *path, struct span name)
{
    for (int i = 0; name.len > 0 && i < RULES_STARS_MAX; i++)
        if (span_equal(path->name[i], name))
            return i;
    return -1;
}

/* ---- the path ---- */

struct reading {
    struct span whole, rest;
    struct config_sitepath *path;
    unsigned stars;
    bool splat; /* there was a `*` */
    struct buf out;
    struct config_reason *reason;
};

static bool refuse_sitepath(const struct reading *r, const char *why)
{
    return config_problem_refuse(r->reason, "the path `%.*s` %s",
                                 config_problem_quote_len(r->whole), r->whole.at, why);
}

static char last_byte(const struct buf *out)
{
    return out->len > 0 ? out->at[out->len - 1] : '\0';
}

static bool add_star(struct reading *r, struct span text, struct span name, bool filled)
{
    if (r->stars == RULES_STARS_MAX)
        return refuse_sitepath(r, "has more than 8 placeholders");
    if (find_star(r->path, name) >= 0)
        return refuse_sitepath(r, "has two placeholders of the same name");
    r->path->name[r->stars] = name;
    r->path->pattern.filled |= (uint8_t)(filled << r->stars);
    r->stars++;
    buf_add(&r->out, text);
    return true;
}

static bool add_two_stars(struct reading *r, struct span first, struct span second)
{
    return add_star(r, first, SPAN(""), false) && add_star(r, second, SPAN(""), false);
}

static bool read_splat(struct reading *r)
{
    const bool begins = last_byte(&r->out) == '/';
    const struct span behind = span_skip(r->rest, 1);
    r->rest = behind;
    if (r->splat)
        return refuse_sitepath(r, "has more than one `*`");
    if (last_byte(&r->out) == '*')
        return refuse_sitepath(r, "has a `*` directly behind a placeholder");
    r->splat = true;
    if (behind.len == 0 && begins)
        return add_star(r, SPAN("**"), splat, false);
    if (behind.len == 0 || (begins && behind.at[0] == '/'))
        return add_two_stars(r, SPAN("*"), SPAN("/**"));
    if (begins && !memchr(behind.at, '/', behind.len))
        return add_two_stars(r, SPAN("**"), SPAN("/*"));
    return refuse_sitepath(r, "has a `*` where none is supported; it can be at the end, a whole "
                              "segment, or at the beginning of the last segment");
}

static bool read_escaped(struct reading *r)
{
    const int byte = read_escape(r->rest);
    if (byte < 0)
        return refuse_sitepath(r, "has a `%` without two hexadecimal digits");
    if (byte == '/' || byte == '*')
        return refuse_sitepath(r, "has an escaped slash or star, which no path of a rule has");
    buf_add_char(&r->out, (char)byte);
    r->rest = span_skip(r->rest, sizeof("%41") - 1);
    return true;
}

/* Reads one byte, or a placeholder. */
static bool read_part(struct reading *r)
{
    const char c = r->rest.at[0];
    const struct span name = c == ':' && last_byte(&r->out) == '/' ? placeholder_name(r->rest)
                                                                   : SPAN("");
    if (name.len > 0) {
        r->rest = span_skip(r->rest, 1 + name.len);
        return add_star(r, SPAN("*"), name, true);
    }
    switch (c) {
    case '*':
        return read_splat(r);
    case '%':
        return read_escaped(r);
    case '?':
    case '#':
        return refuse_sitepath(r, "has a query or a fragment; rules are for paths alone");
    default:
        buf_add_char(&r->out, c);
        r->rest = span_skip(r->rest, 1);
        return true;
    }
}

bool config_sitepath_read(struct span text, struct config_arena *arena,
                          struct config_sitepath *ret_path, struct config_reason *ret_reason)
{
    char storage[RULES_PATTERN_MAX + 1];
    struct reading r = { .whole = text,
                         .rest = text,
                         .path = ret_path,
                         .out = buf_over(storage, sizeof(storage)),
                         .reason = ret_reason };
    const char *why;
    *ret_path = (struct config_sitepath){ .pattern = { .filled = 0 } };
    while (r.rest.len > 0 && !r.out.overflow)
        if (!read_part(&r))
            return false;
    if (r.out.overflow)
        return refuse_sitepath(&r, "has more than 1024 bytes");
    const uint8_t filled = ret_path->pattern.filled;
    const char *pattern = config_arena_copy(arena, buf_span(&r.out));
    if (!rules_pattern_parse(span_of(pattern, r.out.len), &ret_path->pattern, &why))
        return refuse_sitepath(&r, why);
    ret_path->pattern.filled = filled;
    return true;
}

/* ---- the target ---- */

struct writing {
    const struct config_sitepath *path;
    struct span whole, rest;
    bool rewrite;
    unsigned stars;
    uint8_t star_of[RULES_STARS_MAX];
    struct buf out;
    struct config_reason *reason;
};

static bool refuse_sitetarget(const struct writing *w, const char *why)
{
    return config_problem_refuse(w->reason, "the target `%.*s` %s",
                                 config_problem_quote_len(w->whole), w->whole.at, why);
}

static bool write_placeholder(struct writing *w, int star, size_t len)
{
    if (w->stars == RULES_STARS_MAX)
        return refuse_sitetarget(w, "has more than 8 placeholders");
    if (last_byte(&w->out) == '*')
        return refuse_sitetarget(w, "has two placeholders side by side, which is not supported");
    w->star_of[w->stars++] = (uint8_t)star;
    buf_add_char(&w->out, '*');
    w->rest = span_skip(w->rest, len);
    return true;
}

static bool write_colon(struct writing *w)
{
    const struct span name = placeholder_name(w->rest);
    const int star = find_star(w->path, name);
    const bool meant = last_byte(&w->out) == '/' && name.len > 0;
    if (star >= 0)
        return write_placeholder(w, star, 1 + name.len);
    if (span_equal(name, splat))
        return refuse_sitetarget(w, "uses :splat, and the path does not end with a segment `*`");
    if (meant)
        return config_problem_refuse(w->reason,
                                     "the target `%.*s` uses :%.*s, and the path has no such "
                                     "placeholder",
                                     config_problem_quote_len(w->whole), w->whole.at, (int)name.len,
                                     name.at);
    buf_add_char(&w->out, ':');
    w->rest = span_skip(w->rest, 1);
    return true;
}

/* The path of a rewrite is decoded, as that of a request is. */
static bool write_decoded(struct writing *w)
{
    const int byte = read_escape(w->rest);
    if (byte < 0)
        return refuse_sitetarget(w, "has a `%` without two hexadecimal digits");
    if (byte == '/' || byte == '*')
        return refuse_sitetarget(w, "has an escaped slash or star, which is not supported");
    buf_add_char(&w->out, (char)byte);
    w->rest = span_skip(w->rest, sizeof("%41") - 1);
    return true;
}

static bool write_part(struct writing *w)
{
    const char c = w->rest.at[0];
    if (c == ':')
        return write_colon(w);
    if (c == '*')
        return refuse_sitetarget(w, "has a `*`; write :splat for what the `*` of the path covers");
    if (w->rewrite && c == '%')
        return write_decoded(w);
    if (w->rewrite && c == '#')
        return refuse_sitetarget(w, "has a fragment, which only a redirect can have");
    buf_add_char(&w->out, c);
    w->rest = span_skip(w->rest, 1);
    return true;
}

bool config_sitepath_read_target(const struct config_sitepath *path, struct span text, bool rewrite,
                                 struct config_arena *arena, struct rules_target *ret_target,
                                 struct config_reason *ret_reason)
{
    char storage[RULES_TARGET_MAX + 1];
    struct writing w = { .path = path,
                         .whole = text,
                         .rest = text,
                         .rewrite = rewrite,
                         .out = buf_over(storage, sizeof(storage)),
                         .reason = ret_reason };
    const char *why;
    while (w.rest.len > 0 && !w.out.overflow)
        if (!write_part(&w))
            return false;
    if (w.out.overflow)
        return refuse_sitetarget(&w, "has more than 1024 bytes");
    const struct span target = span_of(config_arena_copy(arena, buf_span(&w.out)), w.out.len);
    const bool good = rewrite ? rules_target_parse_rewrite(target, ret_target, &why)
                              : rules_target_parse_redirect(target, ret_target, &why);
    if (!good)
        return refuse_sitetarget(&w, why);
    CHECK(ret_target->stars == w.stars);
    memcpy(ret_target->star_of, w.star_of, sizeof(w.star_of));
    return true;
}

struct span config_sitepath_find(const struct config_sitepath *path, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        const struct span rest = span_skip(text, i);
        const struct span name = rest.at[0] == ':' ? placeholder_name(rest) : SPAN("");
        if (find_star(path, name) >= 0)
            return span_first(rest, 1 + name.len);
    }
    return SPAN("");
}
