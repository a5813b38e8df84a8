/* SPDX-License-Identifier: MIT */
#include "trace/path.h"

#include "base/escape.h"
#include "http/fault.h"
#include "http/request.h"
#include "http/target.h"
#include "session/guard.h"
#include "trace/rule.h"

enum { REQUEST_MAX = HTTP_TARGET_MAX + 64, TEXT_MAX = 8 * 1024 };

static void print_line(FILE *out, const char *about, struct span text)
{
    fprintf(out, "  %-10s  %.*s\n", about, (int)text.len, text.at);
}

/* A rule may be without effect for this path: a later one has the same kind of setting. */
static void add_effect(struct buf *text, const struct rules_rule *rule,
                       const struct rules_match *match, const struct rules_rule *keeper)
{
    static const struct span later = SPAN(", but a later rule decides");
    const bool acts = rule->action != RULES_SERVE && rule != match->actor;
    const bool gates = rule->network_count > 0 && rule != match->gate;
    const bool keeps = rule->auth != RULES_UNSET && rule->origin && rule != keeper;
    const bool meters = rule->rate.interval_ns > 0 && rule != match->meter;
    if (acts)
        buf_add(text, later);
    if (gates)
        buf_add(text, SPAN("; the networks of a later rule hold"));
    if (meters)
        buf_add(text, SPAN("; the rate of a later rule holds"));
    if (keeps)
        buf_add(text, SPAN("; the auth of a later rule holds"));
}

static void print_rules(const struct config_site *site, struct span path,
                        const struct rules_match *match, FILE *out)
{
    const struct rules *rules = site->rules;
    char bytes[TEXT_MAX];
    for (unsigned i = 0; i < rules->count; i++) {
        struct buf text = buf_over(bytes, sizeof(bytes));
        if (!rules_match_has(match, i))
            continue;
        trace_rule_describe(site, &rules->rule[i], &text);
        add_effect(&text, &rules->rule[i], match, rules_keeper(rules, path));
        print_line(out, "rule", buf_span(&text));
    }
    const struct rules_rule *actor = match->actor;
    if (!rules_lists(rules, actor))
        return;
    struct buf text = buf_over(bytes, sizeof(bytes));
    trace_rule_describe(site, actor, &text);
    buf_add(&text, actor->if_absent ? SPAN(", where no file is") : SPAN(""));
    print_line(out, "rule", buf_span(&text));
}

/* The password of a path may come from a rule that covers another name of its file. */
static void print_password(const struct config_site *site, const struct rules_rule *keeper,
                           FILE *out)
{
    char bytes[TEXT_MAX];
    struct buf text = buf_over(bytes, sizeof(bytes));
    buf_add(&text, SPAN("of "));
    buf_add(&text, span_text(keeper ? trace_rule_users(site, keeper) : site->auth));
    buf_add(&text, SPAN(", by "));
    buf_add(&text, span_text(keeper && keeper->origin ? keeper->origin : site->origin));
    print_line(out, "password", buf_span(&text));
}

static void print_fields(const struct config_site *site, struct rules_match *match, bool is_private,
                         FILE *out)
{
    char bytes[TEXT_MAX];
    struct buf text = buf_over(bytes, sizeof(bytes));
    match->is_private = is_private;
    rules_add_fields(site->rules, match, false, &text);
    for (struct span rest = buf_span(&text); rest.len > 0;) {
        const char *end = memchr(rest.at, '\r', rest.len);
        const struct span line = span_first(rest, end ? (size_t)(end - rest.at) : rest.len);
        print_line(out, "field", line);
        rest = span_skip(rest, line.len + (end ? 2 : 0));
    }
}

static void explain_site(const struct config_site *site, struct span path, FILE *out)
{
    fprintf(out, "site %s, %s\n", site->name, site->origin);
    if (!site->rules) {
        print_line(out, "rule", SPAN("the site has no [path]"));
        if (site->auth)
            print_password(site, NULL, out);
        return;
    }
    struct rules_match match;
    rules_find(site->rules, path, &match);
    print_rules(site, path, &match, out);
    const struct rules_rule *keeper = session_guard_rule(site->rules, site->index, path);
    if (keeper)
        print_password(site, keeper, out);
    print_fields(site, &match, keeper != NULL, out);
}

bool trace_path_explain(const struct config *config, const char *path, FILE *out,
                        const char **ret_why)
{
    char bytes[REQUEST_MAX], storage[HTTP_TARGET_MAX], shown[TEXT_MAX];
    struct buf head = buf_over(bytes, sizeof(bytes));
    struct http_request request = { 0 };
    enum http_status status;
    struct http_target target;
    buf_add(&head, SPAN("GET "));
    buf_add(&head, span_text(path));
    buf_add(&head, SPAN(" HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    *ret_why = "is no path of a request; it begins with a slash, and other bytes than those of a "
               "URL are percent-encoded";
    if (head.overflow || http_request_parse(&request, buf_span(&head), &status) != HTTP_PARSED ||
        http_target_resolve(&target, &request, bytes, storage, sizeof(storage)) != 0)
        return false;
    const size_t len = escape_text(shown, sizeof(shown), target.path, ESCAPE_TEXT);
    fprintf(out, "path %.*s\n", (int)len, shown);
    for (unsigned i = 0; i < config->site_count; i++)
        explain_site(&config->sites[i], target.path, out);
    return true;
}
