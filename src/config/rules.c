/* SPDX-License-Identifier: MIT
 *
 * The first rule of a site with rules is the site's own: it covers every path, and has the `header`
 * lines of the site. So a path can replace or remove them.
 */
#include "config/rules.h"

#include "base/num.h"
#include "config/address.h"
#include "config/cors.h"
#include "config/dictionary.h"
#include "config/field.h"
#include "config/rate.h"
#include "rules/lifetime.h"
#include "rules/rules.h"

#include <sys/stat.h>

/* ---- values ---- */

static const char *const redirects[] = { "301", "302", "303", "307", "308", NULL };

/* The target behind the status, which has 3 digits. */
static struct span target_text(const char *redirect)
{
    return span_text(redirect + sizeof("301 ") - 1);
}

/* `301 /new`: a status, one space in the canonical form, and a target (rules/target.h). */
static bool check_redirect(struct span text, struct config_arena *arena, const char **ret_text,
                           struct config_reason *ret_reason)
{
    struct span rest = text;
    const struct span status = span_take(&rest, ' '), target = span_trim(rest);
    struct rules_target parsed;
    const char *reason;
    bool known = false;
    for (const char *const *redirect = redirects; *redirect; redirect++)
        known = known || span_equal(status, span_text(*redirect));
    if (!known)
        return config_problem_refuse(
            ret_reason,
            "`%.*s` does not begin with a status of a redirect; write 301, "
            "302, 303, 307 or 308, as in 301 /new",
            config_problem_quote_len(text), text.at);
    if (!rules_target_parse_redirect(target, &parsed, &reason))
        return config_problem_refuse(ret_reason, "the target `%.*s` %s",
                                     config_problem_quote_len(target), target.at, reason);
    *ret_text = config_arena_print(arena, "%.*s %.*s", (int)status.len, status.at, (int)target.len,
                                   target.at);
    return true;
}

static bool check_rewrite(struct span text, struct config_reason *ret_reason)
{
    struct rules_target parsed;
    const char *reason;
    return rules_target_parse_rewrite(text, &parsed, &reason) ||
           config_problem_refuse(ret_reason, "`%.*s` %s", config_problem_quote_len(text), text.at,
                                 reason);
}

bool config_rules_check(enum config_kind kind, struct span text, struct config_arena *arena,
                        const char **ret_text, struct config_reason *ret_reason)
{
    switch ((int)kind) {
    case CONFIG_RULE:
        return config_field_check_rule(text, arena, ret_text, ret_reason);
    case CONFIG_CACHE:
        return config_field_check_cache(text, ret_reason);
    case CONFIG_FIELDS:
        return config_field_check_name(text, ret_reason);
    case CONFIG_ORIGIN:
        return config_cors_check_origin(text, arena, ret_text, ret_reason);
    case CONFIG_ACCESS:
        return span_equal(text, SPAN("all")) || config_address_check_network(text, ret_reason);
    case CONFIG_REDIRECT:
        return check_redirect(text, arena, ret_text, ret_reason);
    case CONFIG_REWRITE:
        return check_rewrite(text, ret_reason);
    default:
        return false;
    }
}

/* ---- headings ---- */

struct config_section_values *config_rules_add_path(struct config_store *store,
                                                    struct config_section_values *site,
                                                    struct span pattern,
                                                    struct config_origin origin)
{
    struct rules_pattern parsed;
    const char *reason;
    if (!rules_pattern_parse(pattern, &parsed, &reason)) {
        config_problem_error(&store->problems, origin, "[path %.*s]: the pattern %s",
                             config_problem_quote_len(pattern), pattern.at, reason);
        return config_store_new_section(store, CONFIG_PATH, pattern, origin);
    }
    const struct config_section_values *path = config_store_find_path(store, site, pattern);
    if (path) {
        config_problem_error(&store->problems, origin,
                             "[path %s] is there twice in [site %s] (first on line %u)", path->name,
                             site->name, path->origin.line);
        return config_store_new_section(store, CONFIG_PATH, pattern, origin);
    }
    return config_store_add_path(store, site, pattern, origin);
}

/* ---- one path ---- */

/* A section, its problems and its rule. */
struct making {
    struct config_store *store;
    const struct config_section_values *values;
    const struct config_path *path;
    struct rules_rule *rule;
};

/* The three digits at the front of a checked value. */
static unsigned read_status(const char *text)
{
    uint64_t status;
    CHECK(num_parse_u64(span_of(text, 3), &status));
    return (unsigned)status;
}

static void read_action(const struct making *m)
{
    struct rules_rule *rule = m->rule;
    const char *reason;
    if (m->path->redirect) {
        rule->action = RULES_REDIRECT;
        rule->status = read_status(m->path->redirect);
        CHECK(rules_target_parse_redirect(target_text(m->path->redirect), &rule->target, &reason));
    } else if (m->path->rewrite) {
        rule->action = RULES_REWRITE;
        CHECK(rules_target_parse_rewrite(span_text(m->path->rewrite), &rule->target, &reason));
    } else if (m->path->status) {
        rule->action = RULES_STATUS;
        rule->status = read_status(m->path->status);
    }
}

/* A section has one action, or the order of its lines would decide. */
static void check_one_action(const struct making *m)
{
    static const enum config_setting_place places[] = { SETTING_redirect, SETTING_rewrite,
                                                        SETTING_status };
    const struct config_item *first = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct config_item *item = config_store_first(m->values, places[i]);
        if (first && item)
            config_problem_error(&m->store->problems, item->origin,
                                 "%s: the path already has a `%s` (line %u); remove one of them",
                                 config_setting_table[places[i]].name, name, first->origin.line);
        if (!item || first)
            continue;
        first = item;
        name = config_setting_table[places[i]].name;
    }
}

static void check_stars(const struct making *m, const struct config_item *item, const char *name)
{
    if (m->rule->target.stars > m->rule->pattern.stars)
        config_problem_error(&m->store->problems, item->origin,
                             "%s: the target has %u star%s, and the pattern of its section has %u; "
                             "each star stands for the one at the same place of the pattern",
                             name, m->rule->target.stars, m->rule->target.stars == 1 ? "" : "s",
                             m->rule->pattern.stars);
}

/* A client that follows such a redirect comes back to the same rule. */
static void check_loop(const struct making *m, const struct config_item *item)
{
    char storage[RULES_TARGET_MAX + RULES_STARS_MAX];
    struct buf path = buf_over(storage, sizeof(storage));
    const struct rules_target *target = &m->rule->target;
    struct rules_captures parts, captures;
    if (target->origin_len > 0 || target->stars > m->rule->pattern.stars)
        return;
    for (size_t i = 0; i < RULES_STARS_MAX; i++)
        parts.part[i] = SPAN("x");
    rules_target_add_path(target, &parts, &path);
    if (!path.overflow && rules_pattern_matches(&m->rule->pattern, buf_span(&path), &captures))
        config_problem_warning(&m->store->problems, item->origin,
                               "redirect: the pattern of its section also covers the target, so a "
                               "client that follows is redirected again");
}

/* A rewrite to one file, which is not there now. */
static void check_rewritten(const struct making *m, const struct config_item *item,
                            const char *root)
{
    struct stat info;
    if (m->rule->target.stars > 0 || !root)
        return;
    if (stat(config_arena_print(&m->store->arena, "%s%s", root, item->text), &info) < 0)
        config_problem_warning(&m->store->problems, item->origin,
                               "rewrite: there is no `%s` in %s now, so the answer is 404",
                               item->text, root);
}

/* %41 in a pattern probably means A, and is never matched: paths are decoded first. */
static void check_pattern(const struct making *m)
{
    const struct span pattern = span_text(m->path->pattern);
    const char *percent = memchr(pattern.at, '%', pattern.len);
    if (percent && strspn(percent + 1, "0123456789abcdefABCDEF") >= 2)
        config_problem_warning(&m->store->problems, m->values->origin,
                               "[path %s]: paths are decoded before they are matched; write the "
                               "character in place of `%.3s`",
                               m->path->pattern, percent);
    if (memchr(pattern.at, '?', pattern.len))
        config_problem_warning(&m->store->problems, m->values->origin,
                               "[path %s]: a pattern is matched against the path without the "
                               "query; this `?` is a byte of the path",
                               m->path->pattern);
}

static struct rules_field make_field(struct config_store *store, const char *text, bool on_errors)
{
    const size_t len = strcspn(text, ":");
    if (text[len] == '\0')
        return (struct rules_field){ .name = span_text(text + 1), .on_errors = on_errors };
    return (struct rules_field){
        .name = span_of(text, len),
        .line = span_text(config_arena_print(&store->arena, "%s\r\n", text)),
        .on_errors = on_errors,
    };
}

static void make_fields(const struct making *m)
{
    static const struct span cache_control = SPAN("Cache-Control");
    const struct config_path *path = m->path;
    struct rules_rule *rule = m->rule;
    size_t count = CONFIG_CORS_FIELDS + (path->path_cache_control ? 1 : 0);
    for (const char *const *header = path->path_headers; *header; header++)
        count++;
    struct rules_field *fields = config_arena_take(&m->store->arena, count * sizeof(*fields));
    for (const char *const *header = path->path_headers; *header; header++)
        fields[rule->field_count++] = make_field(m->store, *header, path->path_always);
    const struct config_item *item = config_store_first(m->values, SETTING_path_cache_control);
    for (size_t i = 0; item && i < rule->field_count; i++)
        if (span_equal_nocase(fields[i].name, cache_control))
            config_problem_error(&m->store->problems, item->origin,
                                 "cache-control: the section also has a `header` of that name; "
                                 "remove one of them");
    if (item)
        fields[rule->field_count++] = make_field(
            m->store, config_arena_print(&m->store->arena, "Cache-Control: %s", item->text),
            path->path_always);
    rule->fields = fields;
    config_cors_make(m->store, m->values, path, rule, fields);
}

/* ---- networks ---- */

/* `text` is checked (config_address_check_network). */
static struct rules_network read_network(const char *text, bool admits)
{
    struct rules_network network = { .text = span_text(text) };
    if (strcmp(text, "all") != 0)
        CHECK(config_address_read_network(network.text, &network));
    network.admits = admits;
    return network;
}

static size_t count_texts(const char *const *texts)
{
    size_t count = 0;
    while (texts[count])
        count++;
    return count;
}

/* Of two equal networks, neither is smaller. */
static void check_network(const struct making *m, const struct rules_network *network,
                          const struct rules_network *earlier, const struct config_item *item)
{
    if (rules_network_equal(network, earlier))
        config_problem_error(&m->store->problems, item->origin,
                             "%s: `%s` is the same network as `%.*s` in %s; remove one of them",
                             network->admits ? "allow" : "deny", item->text, (int)earlier->text.len,
                             earlier->text.at, earlier->admits ? "allow" : "deny");
}

static void make_networks(const struct making *m)
{
    static const enum config_setting_place places[] = { SETTING_allow, SETTING_deny };
    struct rules_rule *rule = m->rule;
    const size_t most = count_texts(m->path->allow) + count_texts(m->path->deny);
    struct rules_network *networks = config_arena_take(&m->store->arena, most * sizeof(*networks));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const struct config_item *item = config_store_first(m->values, places[i]);
        for (; item; item = item->next) {
            struct rules_network *network = &networks[rule->network_count];
            *network = read_network(item->text, places[i] == SETTING_allow);
            for (size_t k = 0; k < rule->network_count; k++)
                check_network(m, network, &networks[k], item);
            rule->network_count++;
        }
    }
    rule->networks = networks;
}

static enum rules_choice choice_of(const struct making *m, enum config_setting_place place, bool on)
{
    if (!config_store_first(m->values, place))
        return RULES_UNSET;
    return on ? RULES_ON : RULES_OFF;
}

/* What the section says about files. */
static void read_choices(const struct making *m)
{
    const char *fallback = m->path->path_fallback;
    m->rule->listing = choice_of(m, SETTING_path_listing, m->path->path_listing);
    m->rule->markdown = choice_of(m, SETTING_path_markdown, m->path->path_markdown);
    m->rule->hidden = choice_of(m, SETTING_path_hidden, m->path->path_hidden);
    m->rule->index = m->path->path_index[0] ? m->path->path_index : NULL;
    m->rule->fallback = fallback && strcmp(fallback, "off") == 0 ? "" : fallback;
    m->rule->error_pages = m->path->path_error_pages;
}

/* Whether the section has none of the settings that have an effect. */
static bool changes_nothing(const struct rules_rule *rule)
{
    return rule->action == RULES_SERVE && rule->field_count == 0 && rule->network_count == 0 &&
           rule->listing == RULES_UNSET && rule->hidden == RULES_UNSET &&
           rule->markdown == RULES_UNSET && rule->dictionary == RULES_UNSET &&
           rule->auth == RULES_UNSET && !rule->rate.text && !rule->index && !rule->fallback &&
           !rule->error_pages;
}

static void make_rule(const struct making *m, const char *root)
{
    const struct config_item *redirect = config_store_first(m->values, SETTING_redirect);
    const struct config_item *rewrite = config_store_first(m->values, SETTING_rewrite);
    struct rules_rule *rule = m->rule;
    const char *reason;
    CHECK(rules_pattern_parse(span_text(m->path->pattern), &rule->pattern, &reason));
    rule->origin = m->path->origin;
    check_pattern(m);
    check_one_action(m);
    make_fields(m);
    make_networks(m);
    read_choices(m);
    config_rate_make(m->store, m->values, m->path, rule);
    if (m->path->path_auth)
        rule->auth = strcmp(m->path->path_auth, "off") == 0 ? RULES_OFF : RULES_ON;
    read_action(m);
    if (rule->action == RULES_REDIRECT) {
        check_stars(m, redirect, "redirect");
        check_loop(m, redirect);
    } else if (rule->action == RULES_REWRITE) {
        check_stars(m, rewrite, "rewrite");
        check_rewritten(m, rewrite, root);
    }
    rule->dictionary = choice_of(m, SETTING_path_dictionary, m->path->path_dictionary);
    if (rule->dictionary == RULES_ON)
        config_dictionary_make(m->store, m->values, m->path->pattern, rule);
    /* An error may be why a section has no setting left. */
    if (m->store->problems.error_count == 0 && changes_nothing(rule))
        config_problem_warning(&m->store->problems, m->values->origin,
                               "[path %s] changes nothing: it has no field, network or action",
                               m->path->pattern);
}

/* ---- a site ---- */

static void make_own_rule(struct config_store *store, const struct config_site *site,
                          struct rules_rule *rule)
{
    const char *reason;
    size_t count = 0;
    while (site->headers[count])
        count++;
    struct rules_field *fields = config_arena_take(&store->arena, count * sizeof(*fields));
    for (size_t i = 0; i < count; i++)
        fields[i] =
            make_field(store, site->headers[i], !rules_lifetime_given(span_text(site->headers[i])));
    CHECK(rules_pattern_parse(SPAN("/**"), &rule->pattern, &reason));
    rule->fields = fields;
    rule->field_count = count;
    rule->listing = site->listing ? RULES_ON : RULES_OFF;
    rule->markdown = site->markdown ? RULES_ON : RULES_OFF;
    rule->auth = site->auth ? RULES_ON : RULES_OFF;
}

void config_rules_use_index(struct rules *rules, struct config_arena *arena)
{
    rules_use_index(rules, config_arena_take(arena, rules_index_storage(rules)));
}

/* Lists the folders of error pages, and gives each its number. */
static const char *const *number_error_folders(struct config_store *store, struct rules_rule *rule,
                                               unsigned count)
{
    const char **folders = config_arena_take(&store->arena, count * sizeof(*folders));
    for (unsigned i = 1; i < count; i++) {
        unsigned at = 0;
        if (!rule[i].error_pages)
            continue;
        while (folders[at] && strcmp(folders[at], rule[i].error_pages) != 0)
            at++;
        folders[at] = rule[i].error_pages;
        rule[i].error_folder = at + 1;
    }
    return folders;
}

static void make_rules(struct config_store *store, const struct config_section_values *values,
                       struct config_site *site)
{
    const struct config_section_values *path = values->paths;
    const unsigned count = site->path_count + 1;
    if (path && count > RULES_MAX) {
        config_problem_error(&store->problems, path->origin, "[site %s] has %u paths; %d at most",
                             site->name, site->path_count, RULES_MAX - 1);
        return;
    }
    struct rules_rule *rule = config_arena_take(&store->arena, count * sizeof(*rule));
    struct rules *rules = config_arena_take(&store->arena, sizeof(*rules));
    *rules = (struct rules){ .rule = rule, .count = count };
    make_own_rule(store, site, &rule[0]);
    for (unsigned i = 1; path && i < count; i++, path = path->next) {
        const struct making making = { store, path, &site->paths[i - 1], &rule[i] };
        rule[i].number = i;
        make_rule(&making, site->root);
    }
    config_rules_use_index(rules, &store->arena);
    const size_t hsts = site->hsts_s != CONFIG_NEVER ? CONFIG_HSTS_MAX : 0;
    if (rules_fields_most(rules) + hsts > CONFIG_HEADERS_MAX)
        config_problem_error(&store->problems, values->origin,
                             "[site %s]: the header lines of the site and its paths can add more "
                             "than %d bytes to an answer",
                             site->name, CONFIG_HEADERS_MAX);
    site->rules = rules;
    site->error_folders = number_error_folders(store, rule, count);
}

void config_rules_build(struct config_store *store)
{
    struct config_site *site = (struct config_site *)(uintptr_t)store->config.sites;
    for (const struct config_section_values *values = store->sites; values; values = values->next) {
        if (values->paths || site->site_rules)
            make_rules(store, values, site);
        site++;
    }
}
