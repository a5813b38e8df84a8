/* SPDX-License-Identifier: MIT */
#include "config/field.h"

#include "base/nearest.h"
#include "base/num.h"
#include "base/scan.h"
#include "http/list.h"
#include "http/token.h"

/* Fields that weir itself writes where they apply. A second one would be wrong, and with fields of
 * framing dangerous. */
static const char *const own_fields[] = {
    "Accept-Ranges",
    "Age",
    "Allow",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Date",
    "ETag",
    "Keep-Alive",
    "Last-Modified",
    "Location",
    "Proxy-Connection",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "X-Content-Type-Options",
    NULL,
};

static const char *own_field(struct span name)
{
    for (const char *const *own = own_fields; *own; own++)
        if (span_equal_nocase(name, span_text(*own)))
            return *own;
    return NULL;
}

static bool check_name_of_field(struct span name, struct config_reason *ret_reason)
{
    if (!http_token_valid(name))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a field name (letters, digits and - , then "
                                     "directly the colon)",
                                     config_problem_quote_len(name), name.at);
    if (own_field(name))
        return config_problem_refuse(
            ret_reason, "weir itself sends %s where it applies; remove this line", own_field(name));
    if (span_equal_nocase(name, SPAN("Server")))
        return config_problem_refuse(ret_reason,
                                     "use the setting `server-header` for the field Server");
    return true;
}

/* `Name: value`: the name is a token (RFC 9110 section 5.6.2), the value has no control bytes
 * (RFC 9110 section 5.5). The line can neither end the head early nor contradict a field of the
 * server's own. */
bool config_field_check(struct span text, struct config_arena *arena, const char **ret_line,
                        struct config_reason *ret_reason)
{
    int len = config_problem_quote_len(text);
    const char *colon = memchr(text.at, ':', text.len);
    if (!colon)
        return config_problem_refuse(ret_reason, "`%.*s` has no colon; write Name: value", len,
                                     text.at);
    struct span name = span_of(text.at, (size_t)(colon - text.at));
    struct span value = span_trim(span_skip(text, name.len + 1));
    if (http_token_valid(name) && value.len == 0)
        return config_problem_refuse(ret_reason, "`%.*s` has no value after the colon", len,
                                     text.at);
    if (http_token_valid(name) && scan_field_value_end(value.at, value.len) < value.len)
        return config_problem_refuse(ret_reason,
                                     "the value of `%.*s` has a control byte, such as a line "
                                     "break",
                                     config_problem_quote_len(name), name.at);
    if (!check_name_of_field(name, ret_reason))
        return false;
    *ret_line =
        config_arena_print(arena, "%.*s: %.*s", (int)name.len, name.at, (int)value.len, value.at);
    return true;
}

bool config_field_check_rule(struct span text, struct config_arena *arena, const char **ret_line,
                             struct config_reason *ret_reason)
{
    if (text.at[0] != '-')
        return config_field_check(text, arena, ret_line, ret_reason);
    if (memchr(text.at, ':', text.len))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` removes a field, so it has no value; write -Name",
                                     config_problem_quote_len(text), text.at);
    return check_name_of_field(span_skip(text, 1), ret_reason);
}

bool config_field_check_name(struct span text, struct config_reason *ret_reason)
{
    return http_token_valid(text) ||
           config_problem_refuse(ret_reason, "`%.*s` is not the name of a field",
                                 config_problem_quote_len(text), text.at);
}

/* Directives with seconds are first (RFC 9111 section 5.2.2, RFC 5861, RFC 8246). */
static const char *const directives[] = {
    "max-age",
    "s-maxage",
    "stale-while-revalidate",
    "stale-if-error",
    "no-cache",
    "no-store",
    "private",
    "public",
    "immutable",
    "must-revalidate",
    "must-understand",
    "no-transform",
    "proxy-revalidate",
    NULL,
};
enum { DIRECTIVES_WITH_SECONDS = 4 };

static bool check_directive(struct span directive, struct config_reason *ret_reason)
{
    const char *equals = memchr(directive.at, '=', directive.len);
    const struct span name =
        span_first(directive, equals ? (size_t)(equals - directive.at) : directive.len);
    uint64_t seconds;
    if (!http_token_valid(name))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a directive; write directives as in public, "
                                     "max-age=3600",
                                     config_problem_quote_len(directive), directive.at);
    for (size_t i = 0; directives[i]; i++) {
        if (!span_equal_nocase(name, span_text(directives[i])))
            continue;
        if (i < DIRECTIVES_WITH_SECONDS &&
            (!equals || !num_parse_u64(span_skip(directive, name.len + 1), &seconds)))
            return config_problem_refuse(
                ret_reason, "`%.*s` needs a number of seconds, as in %s=3600",
                config_problem_quote_len(directive), directive.at, directives[i]);
        return true;
    }
    const char *nearest = nearest_of(name, directives);
    return !nearest ||
           config_problem_refuse(ret_reason, "`%.*s` is no directive; did you mean `%s`?",
                                 config_problem_quote_len(name), name.at, nearest);
}

bool config_field_check_cache(struct span text, struct config_reason *ret_reason)
{
    struct span rest = text, directive;
    if (scan_field_value_end(text.at, text.len) < text.len)
        return config_problem_refuse(ret_reason, "the value has a control byte");
    if (text.len > 0 && text.at[0] >= '0' && text.at[0] <= '9')
        return config_problem_refuse(ret_reason,
                                     "`%.*s` has no name; write max-age= and a number of seconds",
                                     config_problem_quote_len(text), text.at);
    while (http_list_next(&rest, &directive))
        if (!check_directive(directive, ret_reason))
            return false;
    return true;
}
