/* SPDX-License-Identifier: MIT */
#include "config/sitefile.h"

#include "config/field.h"
#include "config/rules.h"
#include "config/sitepath.h"
#include "config/siteredirect.h"
#include "rules/lifetime.h"

enum { FIELDS_MAX = 64 /* of a block */ };

/* ---- _headers ---- */

/* A path, and the lines below it. */
struct block {
    bool any;    /* a path was read */
    bool usable; /* and it can be used */
    bool tried;  /* a line below it was read */
    unsigned line;
    struct span written;
    struct config_sitepath path;
    struct rules_field field[FIELDS_MAX]; /* removals first */
    size_t count, removals;
};

struct headers {
    struct config_siteline_reader reading;
    struct block block;
    struct rules_rule *rule;
    unsigned count, most;
    size_t base_bytes; /* that other rules add to an answer at most */
};

/* The fields of the block, unless they make an answer too long. */
static bool fields_fit(const struct headers *h)
{
    const struct rules own = { .rule = h->rule, .count = h->count + 1 };
    return h->base_bytes + rules_joins_most(&own) <= CONFIG_HEADERS_MAX;
}

static void end_block(struct headers *h)
{
    struct block *block = &h->block;
    const struct config_siteline_reader *r = &h->reading;
    const size_t bytes = block->count * sizeof(block->field[0]);
    if (!block->any || !block->usable)
        return;
    if (block->count == 0) {
        if (!block->tried)
            config_siteline_refuse_at(r, block->line, "there is no header line below this path");
        return;
    }
    if (h->count == h->most) {
        config_siteline_refuse_at(
            r, block->line, "there are too many paths; the lines below this one are not used");
        return;
    }
    struct rules_field *fields = config_arena_take(r->arena, bytes);
    memcpy(fields, block->field, bytes);
    h->rule[h->count] = (struct rules_rule){ .pattern = block->path.pattern,
                                             .fields = fields,
                                             .field_count = block->count,
                                             .origin = config_siteline_origin(r, block->line),
                                             .written = config_siteline_keep(r, block->written) };
    if (fields_fit(h))
        h->count++;
    else
        config_siteline_refuse_at(
            r, block->line,
            "the header lines can add more than 4096 bytes to an answer; the lines "
            "below this path are not used");
}

static void begin_path(struct headers *h, struct span line)
{
    struct config_reason reason;
    struct span words[CONFIG_SITELINE_WORDS];
    const unsigned count = config_siteline_split(line, words);
    struct block *block = &h->block;
    end_block(h);
    block->any = true;
    block->usable = block->tried = false;
    block->line = h->reading.line;
    block->written = words[0];
    block->count = block->removals = 0;
    if (config_siteline_names_host(words[0]))
        config_siteline_refuse(&h->reading,
                               "a path of one host is not supported; begin with the slash, and "
                               "the lines hold for every host of the site");
    else if (count > 1)
        config_siteline_refuse(&h->reading, "the path has a space; write %20");
    else if (!config_sitepath_read(words[0], h->reading.arena, &block->path, &reason))
        config_siteline_refuse(&h->reading, reason.text);
    else
        block->usable = true;
}

/* Keeps a field: `Name: value`, or a name alone, which is removed. */
static void keep_field(struct headers *h, const char *text)
{
    struct block *block = &h->block;
    const struct span name = span_of(text, strcspn(text, ":"));
    struct rules_field field = { .name = name, .on_errors = true, .joins = true };
    size_t at = block->count;
    if (block->count == FIELDS_MAX) {
        config_siteline_refuse(&h->reading, "the path has more than 64 header lines");
        return;
    }
    if (text[name.len] == '\0') {
        at = block->removals++;
        memmove(&block->field[at + 1], &block->field[at],
                (block->count - at) * sizeof(block->field[0]));
    } else {
        field.line = span_text(config_arena_print(h->reading.arena, "%s\r\n", text));
        field.on_errors = !rules_lifetime_given(span_text(text));
    }
    block->field[at] = field;
    block->count++;
}

static void remove_field(struct headers *h, struct span name)
{
    struct config_reason reason;
    const char *text = config_arena_print(h->reading.arena, "-%.*s", (int)name.len, name.at);
    if (name.len == 0 || memchr(name.at, ':', name.len))
        config_siteline_refuse(&h->reading, "a line with `!` has the name of a field alone");
    else if (!config_field_check_rule(span_text(text), h->reading.arena, &text, &reason))
        config_siteline_refuse(&h->reading, reason.text);
    else
        keep_field(h, text + 1);
}

static void add_header_line(struct headers *h, struct span line)
{
    static const struct span ours = SPAN("X-Content-Type-Options");
    struct config_reason reason;
    const char *text;
    const char *colon = memchr(line.at, ':', line.len);
    const size_t name_len = colon ? (size_t)(colon - line.at) : line.len;
    const struct span name = span_trim(span_first(line, name_len));
    const struct span value = span_trim(span_skip(line, name_len + (colon != NULL)));
    const struct span placeholder = config_sitepath_find(&h->block.path, value);
    if (span_equal_nocase(name, ours) && span_equal_nocase(value, SPAN("nosniff")))
        return; /* every answer has it */
    if (span_equal_nocase(name, SPAN("Basic-Auth"))) {
        config_siteline_refuse(&h->reading,
                               "passwords in this file are not supported, and the line is not "
                               "sent; use the setting `auth` of weir.conf");
        return;
    }
    if (placeholder.len > 0)
        (void)config_problem_refuse(&reason, "`%.*s` in a value is not supported",
                                    (int)placeholder.len, placeholder.at);
    else if (config_field_check(line, h->reading.arena, &text, &reason)) {
        keep_field(h, text);
        return;
    }
    config_siteline_refuse(&h->reading, reason.text);
}

static void read_header_line(struct headers *h, struct span line)
{
    struct span words[CONFIG_SITELINE_WORDS];
    if (line.at[0] == '/' ||
        (config_siteline_split(line, words) > 0 && config_siteline_names_host(words[0]))) {
        begin_path(h, line);
        return;
    }
    if (!h->block.any) {
        config_siteline_refuse(&h->reading,
                               "there is no path above this line; a path begins with a slash");
        return;
    }
    h->block.tried = true;
    if (!h->block.usable)
        return; /* the path has been reported */
    if (line.at[0] == '!')
        remove_field(h, span_trim(span_skip(line, 1)));
    else
        add_header_line(h, line);
}

static void read_header_lines(struct headers *h)
{
    struct span line;
    while (config_siteline_take(&h->reading, &line))
        read_header_line(h, line);
    end_block(h);
}

/* ---- both ---- */

static unsigned most_redirects(struct span text)
{
    unsigned lines = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines < CONFIG_SITEFILE_REDIRECTS_MAX ? lines : CONFIG_SITEFILE_REDIRECTS_MAX;
}

static struct rules_rule *take_rules(struct config_arena *arena, unsigned count)
{
    return config_arena_take(arena, count * sizeof(struct rules_rule));
}

const struct rules *config_sitefile_rules(const struct config_site *site,
                                          const struct config_sitefile *headers,
                                          const struct config_sitefile *redirects,
                                          struct config_arena *arena,
                                          struct config_problems *problems)
{
    const struct rules *base = site->rules;
    const unsigned left = RULES_MAX - base->count;
    struct headers h = {
        .reading = config_siteline_begin(headers, arena, problems),
        .most = left < CONFIG_SITEFILE_BLOCKS_MAX ? left : CONFIG_SITEFILE_BLOCKS_MAX,
        .base_bytes = rules_fields_most(base) +
                      (site->hsts_s != CONFIG_NEVER ? CONFIG_HSTS_MAX : 0),
    };
    struct config_siteline_reader r = config_siteline_begin(redirects, arena, problems);
    const unsigned lines = most_redirects(redirects->text);
    struct rules_rule *list = take_rules(arena, lines);
    struct rules *rules = config_arena_take(arena, sizeof(*rules));

    h.rule = take_rules(arena, h.most + 1);
    read_header_lines(&h);
    struct rules_rule *rule = take_rules(arena, base->count + h.count);
    rule[0] = base->rule[0]; /* the site's own fields */
    memcpy(&rule[1], h.rule, h.count * sizeof(*rule));
    memcpy(&rule[1 + h.count], &base->rule[1], (base->count - 1) * sizeof(*rule));
    *rules = (struct rules){ .rule = rule,
                             .count = base->count + h.count,
                             .list = list,
                             .list_count = config_siteredirect_read(&r, list, lines) };
    config_rules_use_index(rules, arena);
    return rules;
}
