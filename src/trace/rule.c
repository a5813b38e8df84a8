/* SPDX-License-Identifier: MIT */
#include "trace/rule.h"

#include "server/auth.h"

static void add_fields(struct buf *text, const struct rules_rule *rule, bool set)
{
    bool any = false;
    for (size_t i = 0; i < rule->field_count; i++) {
        if ((rule->fields[i].line.len > 0) != set)
            continue;
        buf_add(text, any ? SPAN(", ") : set ? SPAN("; sets ") : SPAN("; removes "));
        buf_add(text, rule->fields[i].name);
        any = true;
    }
}

static void add_action(struct buf *text, const struct rules_rule *rule)
{
    static const struct span words[] = {
        [RULES_REDIRECT] = SPAN("; redirects with "),
        [RULES_REWRITE] = SPAN("; answers with the file at `"),
        [RULES_STATUS] = SPAN("; answers with "),
    };
    if (rule->action == RULES_SERVE)
        return;
    buf_add(text, words[rule->action]);
    if (rule->action != RULES_REWRITE)
        buf_add_u64(text, rule->status);
    if (rule->action == RULES_REDIRECT)
        buf_add(text, SPAN(" to `"));
    if (rule->action == RULES_STATUS && rule->target.text.len > 0)
        buf_add(text, SPAN(" and the page at `"));
    buf_add(text, rule->target.text);
    if (rule->target.text.len > 0)
        buf_add_char(text, '`');
}

static void add_networks(struct buf *text, const struct rules_rule *rule, bool admits)
{
    bool any = false;
    for (size_t i = 0; i < rule->network_count; i++) {
        if (rule->networks[i].admits != admits)
            continue;
        buf_add(text, any ? SPAN(", ") : admits ? SPAN("; allows ") : SPAN("; denies "));
        buf_add(text, rule->networks[i].text);
        any = true;
    }
}

/* Appends `; NAME = VALUE` of a switch. */
static void add_choice(struct buf *text, const char *name, enum rules_choice choice)
{
    if (choice == RULES_UNSET)
        return;
    buf_add(text, SPAN("; "));
    buf_add(text, span_text(name));
    buf_add(text, choice == RULES_ON ? SPAN(" = on") : SPAN(" = off"));
}

const char *trace_rule_users(const struct config_site *site, const struct rules_rule *rule)
{
    const unsigned number = rule->number;
    return server_auth_path(site, number == 0 ? site->path_count : number - 1);
}

static void add_files(struct buf *text, const struct rules_rule *rule)
{
    for (const char *const *name = rule->index; name && *name; name++) {
        buf_add(text, name == rule->index ? SPAN("; index = ") : SPAN(", "));
        buf_add(text, span_text(*name));
    }
    if (rule->fallback) {
        buf_add(text, SPAN("; spa = "));
        buf_add(text, span_text(rule->fallback[0] ? rule->fallback : "off"));
    }
    if (rule->error_pages) {
        buf_add(text, SPAN("; error-pages = "));
        buf_add(text, span_text(rule->error_pages));
    }
    add_choice(text, "hidden", rule->hidden);
    add_choice(text, "listing", rule->listing);
    add_choice(text, "markdown", rule->markdown);
    add_choice(text, "dictionary", rule->dictionary);
}

static void add_rate(struct buf *text, const struct rules_rule *rule)
{
    if (!rule->rate.text)
        return;
    buf_add(text, SPAN("; address-request-rate = "));
    buf_add(text, span_text(rule->rate.text));
    if (rule->rate.interval_ns == 0)
        return;
    buf_add(text, SPAN(", at most "));
    buf_add_u64(text, rule->rate.burst);
    buf_add(text, SPAN(" at once"));
}

static void add_password(struct buf *text, const struct config_site *site,
                         const struct rules_rule *rule)
{
    if (rule->auth != RULES_ON) {
        add_choice(text, "auth", rule->origin ? rule->auth : RULES_UNSET);
        return;
    }
    buf_add(text, SPAN("; auth = "));
    buf_add(text, span_text(trace_rule_users(site, rule)));
}

void trace_rule_add_place(const struct config_site *site, const struct rules_rule *rule,
                          struct span separator, struct buf *text)
{
    const bool is_section = rule->written.len == 0;
    const struct span pattern = rule->origin ? rule->pattern.text : span_text(site->name);
    const struct span heading = rule->origin ? SPAN("[path ") : SPAN("[site ");
    buf_add(text, span_text(rule->origin ? rule->origin : site->origin));
    buf_add(text, separator);
    buf_add(text, is_section ? heading : SPAN("`"));
    buf_add(text, is_section ? pattern : rule->written);
    buf_add_char(text, is_section ? ']' : '`');
}

void trace_rule_describe(const struct config_site *site, const struct rules_rule *rule,
                         struct buf *text)
{
    trace_rule_add_place(site, rule, SPAN(": "), text);
    add_fields(text, rule, true);
    add_fields(text, rule, false);
    add_networks(text, rule, true);
    add_networks(text, rule, false);
    add_rate(text, rule);
    add_password(text, site, rule);
    add_files(text, rule);
    add_action(text, rule);
}
