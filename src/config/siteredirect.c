/* SPDX-License-Identifier: MIT */
#include "config/siteredirect.h"

#include "base/num.h"
#include "config/sitepath.h"

/* The words of a line. */
struct redirect {
    struct span from, to, status; /* `to` and `status` may be empty */
    bool forced;
    struct config_reason *reason;
};

static bool refuse_redirect(const struct redirect *d, struct span word, const char *why)
{
    return config_problem_refuse(d->reason, "`%.*s` %s", config_problem_quote_len(word), word.at,
                                 why);
}

static bool is_target(struct span word)
{
    return word.at[0] == '/' || config_siteline_names_host(word);
}

static bool is_status(struct span word)
{
    uint64_t number;
    if (span_ends(word, SPAN("!")))
        word.len--;
    return num_parse_u64(word, &number);
}

static bool is_condition(struct span word)
{
    return memchr(word.at, '=', word.len) != NULL;
}

/* Finds out what each word of a line is. */
static bool sort_words(struct redirect *d, const struct span *words, unsigned count)
{
    d->from = words[0];
    for (unsigned i = 1; i < count; i++) {
        if (d->to.len == 0 && d->status.len == 0 && is_target(words[i]))
            d->to = words[i];
        else if (d->status.len == 0 && is_status(words[i]))
            d->status = words[i];
        else if (is_condition(words[i]))
            return refuse_redirect(
                d, words[i],
                "is a condition, and conditions are not supported; the line holds "
                "for no request");
        else
            return refuse_redirect(
                d, words[i], "is neither a path, a URL nor a status at this place of the line");
    }
    if (count == CONFIG_SITELINE_WORDS)
        return config_problem_refuse(d->reason, "the line has too many words");
    d->forced = span_ends(d->status, SPAN("!"));
    if (d->forced)
        d->status.len--;
    return true;
}

/* What a status means. False: nothing. */
static bool read_code(const struct redirect *d, struct rules_rule *rule)
{
    static const struct {
        struct span text;
        enum rules_action action;
        unsigned status;
    } rows[] = {
        { SPAN("302"), RULES_REDIRECT, 302 }, /* also where there is no status */
        { SPAN("301"), RULES_REDIRECT, 301 }, { SPAN("303"), RULES_REDIRECT, 303 },
        { SPAN("307"), RULES_REDIRECT, 307 }, { SPAN("308"), RULES_REDIRECT, 308 },
        { SPAN("200"), RULES_REWRITE, 0 },    { SPAN("404"), RULES_STATUS, 404 },
        { SPAN("410"), RULES_STATUS, 410 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (d->status.len > 0 && !span_equal(d->status, rows[i].text))
            continue;
        rule->action = rows[i].action;
        rule->status = rows[i].status;
        return true;
    }
    return refuse_redirect(
        d, d->status, "is no status of a redirect; write 200, 301, 302, 303, 307, 308, 404 or 410");
}

/* What the words mean together. */
static bool judge_words(const struct redirect *d, const struct rules_rule *rule)
{
    if (config_siteline_names_host(d->from))
        return refuse_redirect(
            d, d->from,
            "names a host, and rules for one host are not supported; write a [site] "
            "for it in weir.conf");
    if (d->from.at[0] != '/')
        return refuse_redirect(d, d->from, "does not begin with a slash");
    if (d->to.len == 0 && rule->action != RULES_STATUS)
        return refuse_redirect(d, d->from, "has no target behind it");
    if (rule->action != RULES_REDIRECT && config_siteline_names_host(d->to))
        return refuse_redirect(
            d, d->to,
            "is another server, and weir fetches no answers from there; a redirect, "
            "such as 302, can lead to it");
    return true;
}

/* Whether a client that follows comes back to the same rule. */
static bool leads_back(const struct rules_rule *list, unsigned count, const struct rules_rule *rule)
{
    char storage[RULES_TARGET_MAX + RULES_STARS_MAX];
    struct buf path = buf_over(storage, sizeof(storage));
    struct rules_captures captures;
    if (rule->action != RULES_REDIRECT || rule->if_absent || rule->target.origin_len > 0)
        return false;
    for (size_t i = 0; i < RULES_STARS_MAX; i++)
        captures.part[i] = SPAN("x");
    rules_target_add_path(&rule->target, &captures, &path);
    if (path.overflow || !rules_pattern_matches(&rule->pattern, buf_span(&path), &captures))
        return false;
    for (unsigned i = 0; i < count; i++) /* an earlier rule may have it */
        if (rules_pattern_matches(&list[i].pattern, buf_span(&path), &captures))
            return false;
    return true;
}

/* Makes the rule of a line. */
static bool make_redirect(const struct config_siteline_reader *r, struct span line,
                          struct rules_rule *rule, struct config_reason *reason)
{
    struct span words[CONFIG_SITELINE_WORDS];
    struct redirect d = { .reason = reason };
    struct config_sitepath path;
    const unsigned count = config_siteline_split(line, words);
    *rule = (struct rules_rule){ .if_absent = true };
    if (!sort_words(&d, words, count) || !read_code(&d, rule) || !judge_words(&d, rule) ||
        !config_sitepath_read(d.from, r->arena, &path, reason))
        return false;
    if (d.to.len > 0 && !config_sitepath_read_target(&path, d.to, rule->action != RULES_REDIRECT,
                                                     r->arena, &rule->target, reason))
        return false;
    rule->pattern = path.pattern;
    rule->if_absent = !d.forced;
    rule->origin = config_siteline_origin(r, r->line);
    rule->written = config_siteline_keep(r, d.from);
    return true;
}

unsigned config_siteredirect_read(struct config_siteline_reader *r, struct rules_rule *list,
                                  unsigned most)
{
    struct config_reason reason;
    struct rules_rule rule;
    struct span line;
    unsigned count = 0;
    while (config_siteline_take(r, &line)) {
        if (!make_redirect(r, line, &rule, &reason))
            config_siteline_refuse(r, reason.text);
        else if (leads_back(list, count, &rule))
            config_siteline_refuse(r,
                                   "the path also covers the target, so a client that follows is "
                                   "redirected again, without end");
        else if (count == most)
            config_siteline_refuse(r, "there are more than 2100 redirects; this one is not used");
        else
            list[count++] = rule;
    }
    return count;
}
