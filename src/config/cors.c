/* SPDX-License-Identifier: MIT
 *
 * An answer that names one origin, or all, is the same for every request: its field is in the
 * ready-made head. With several origins the field depends on the Origin of the request. Then every
 * answer says `Vary: Origin`. So does the answer to a request without Origin, because a cache could
 * give it to a script.
 */
#include "config/cors.h"

#include "base/num.h"
#include "rules/rules.h"

static bool is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-._[]:", c));
}

/* Whether `authority` is a host with or without a port. Browsers do not send the usual port of the
 * scheme, so an origin with it would never match. */
static bool check_authority(struct span authority, const char *usual_port,
                            struct config_reason *ret_reason)
{
    size_t host = authority.len;
    uint64_t port;
    for (size_t i = 0; i < authority.len; i++)
        if (!is_host_byte(authority.at[i]))
            return config_problem_refuse(ret_reason,
                                         "`%.*s` is more than an origin; write scheme and host, as "
                                         "in https://app.example.org",
                                         config_problem_quote_len(authority), authority.at);
    while (host > 0 && authority.at[host - 1] != ':' && authority.at[host - 1] != ']')
        host--;
    if (host == 0 || authority.at[host - 1] == ']')
        return authority.len > 0 || config_problem_refuse(ret_reason, "the origin has no host");
    struct span text = span_skip(authority, host);
    if (!num_parse_u64(text, &port) || port == 0 || port > UINT16_MAX || host == 1)
        return config_problem_refuse(ret_reason, "`%.*s` has no port behind its colon",
                                     config_problem_quote_len(authority), authority.at);
    if (span_equal(text, span_text(usual_port)))
        return config_problem_refuse(
            ret_reason, "browsers leave out the port %s of this scheme; remove it", usual_port);
    return true;
}

bool config_cors_check_origin(struct span text, struct config_arena *arena, const char **ret_text,
                              struct config_reason *ret_reason)
{
    if (span_equal(text, SPAN("*")) || span_equal(text, SPAN("none")))
        return true;
    char *origin = config_arena_copy(arena, text);
    for (char *c = origin; *c; c++)
        *c = ascii_lower(*c);
    struct span lower = span_text(origin);
    const bool plain = span_starts(lower, SPAN("http://"));
    if (!plain && !span_starts(lower, SPAN("https://")))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not an origin; write https://app.example.org, * or "
                                     "none",
                                     config_problem_quote_len(text), text.at);
    *ret_text = origin;
    return check_authority(span_skip(lower, plain ? strlen("http://") : strlen("https://")),
                           plain ? "80" : "443", ret_reason);
}

/* ---- a section ---- */

#define ALLOW_ORIGIN "Access-Control-Allow-Origin"

static const struct span names[CONFIG_CORS_FIELDS] = {
    SPAN(ALLOW_ORIGIN),
    SPAN("Access-Control-Allow-Credentials"),
    SPAN("Access-Control-Expose-Headers"),
};

static bool has_text(const char *const *texts, const char *text)
{
    for (; *texts; texts++)
        if (strcmp(*texts, text) == 0)
            return true;
    return false;
}

/* `Name: a, b` and CRLF; empty for an empty list. */
static struct span join_line(struct config_store *store, const char *name, const char *const *texts)
{
    const char *line = texts[0] ? config_arena_print(&store->arena, "%s: %s", name, texts[0]) : "";
    for (size_t i = 1; texts[0] && texts[i]; i++)
        line = config_arena_print(&store->arena, "%s, %s", line, texts[i]);
    return span_text(texts[0] ? config_arena_print(&store->arena, "%s\r\n", line) : "");
}

static struct span make_preflight(struct config_store *store, const struct config_path *path)
{
    char age[64] = "";
    const struct span headers =
        join_line(store, "Access-Control-Allow-Headers", path->cors_headers);
    if (path->cors_max_age_s != CONFIG_NEVER)
        (void)snprintf(age, sizeof(age), "Access-Control-Max-Age: %llu\r\n",
                       (unsigned long long)path->cors_max_age_s);
    return span_text(config_arena_print(&store->arena,
                                        "Access-Control-Allow-Methods: GET, HEAD\r\n%.*s%s",
                                        (int)headers.len, headers.at, age));
}

/* The settings that mean something only beside `cors`, and the fields that `cors` itself makes. */
static void check_section(struct config_store *store, const struct config_section_values *values,
                          const struct config_path *path, const struct rules_rule *rule)
{
    static const enum config_setting_place beside[] = { SETTING_cors_credentials,
                                                        SETTING_cors_headers, SETTING_cors_expose,
                                                        SETTING_cors_max_age_s };
    const struct config_item *cors = config_store_first(values, SETTING_cors);
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        const struct config_item *item = config_store_first(values, beside[i]);
        if (!cors && item && item->origin.layer != CONFIG_BY_DEFAULT)
            config_problem_error(&store->problems, item->origin,
                                 "%s: the section has no `cors`, which names the origins",
                                 config_setting_table[beside[i]].name);
    }
    if (cors && cors->next && (has_text(path->cors, "*") || has_text(path->cors, "none")))
        config_problem_error(&store->problems, cors->origin,
                             "cors: `*` and `none` stand alone; remove them or the origins");
    const struct config_item *item = config_store_first(values, SETTING_cors_credentials);
    if (cors && path->cors_credentials &&
        (has_text(path->cors, "*") || has_text(path->cors_headers, "*") ||
         has_text(path->cors_expose, "*")))
        config_problem_error(&store->problems, item->origin,
                             "cors-credentials: browsers do not accept `*` together with "
                             "credentials; name the origins and fields");
    for (size_t i = 0; cors && i < rule->field_count; i++)
        if (span_starts(rule->fields[i].name, SPAN("Access-Control-")))
            config_problem_error(&store->problems, cors->origin,
                                 "cors: the section also has a `header` %.*s; remove one of them",
                                 (int)rule->fields[i].name.len, rule->fields[i].name.at);
}

static void make_origins(struct config_store *store, const struct config_path *path,
                         struct rules_rule *rule)
{
    size_t count = 0;
    while (path->cors[count])
        count++;
    if (count < 2)
        return;
    struct rules_origin *origins = config_arena_take(&store->arena, count * sizeof(*origins));
    for (size_t i = 0; i < count; i++)
        origins[i] = (struct rules_origin){
            .origin = span_text(path->cors[i]),
            .line = span_text(
                config_arena_print(&store->arena, ALLOW_ORIGIN ": %s\r\n", path->cors[i])),
        };
    rule->origins = origins;
    rule->origin_count = count;
}

void config_cors_make(struct config_store *store, const struct config_section_values *values,
                      const struct config_path *path, struct rules_rule *rule,
                      struct rules_field *fields)
{
    static const char *const yes[] = { "true", NULL }, *const nothing[] = { NULL };
    const char *const *texts[CONFIG_CORS_FIELDS] = { nothing, nothing, nothing };
    check_section(store, values, path, rule);
    if (!path->cors[0])
        return;
    rule->has_cors = true;
    if (strcmp(path->cors[0], "none") != 0) {
        make_origins(store, path, rule);
        texts[0] = rule->origin_count > 0 ? nothing : path->cors;
        texts[1] = path->cors_credentials ? yes : nothing;
        texts[2] = path->cors_expose;
        rule->preflight = make_preflight(store, path);
    }
    for (size_t i = 0; i < CONFIG_CORS_FIELDS; i++)
        fields[rule->field_count++] = (struct rules_field){
            .name = names[i],
            .line = join_line(store, names[i].at, texts[i]),
            .on_errors = true,
        };
}
