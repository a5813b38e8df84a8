/* SPDX-License-Identifier: MIT */
#include "config/field.h"

#include "base/scan.h"

/* Fields that weir writes itself, where they apply: a second one would be wrong,
 * and for framing dangerous. */
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

static bool is_token(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.at[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              (c && strchr("!#$%&'*+-.^_`|~", c))))
            return false;
    }
    return text.len > 0;
}

bool config_field_check(struct span text, struct config_arena *arena, const char **ret_line,
                        struct config_reason *ret_reason)
{
    int len = config_quote_len(text);
    const char *colon = memchr(text.at, ':', text.len);
    if (!colon)
        return config_refuse(ret_reason, "`%.*s` has no colon; write Name: value", len, text.at);
    struct span name = span_of(text.at, (size_t)(colon - text.at));
    struct span value = span_trim(span_skip(text, name.len + 1));
    if (!is_token(name))
        return config_refuse(ret_reason,
                             "`%.*s` is not a field name (letters, digits and - , then "
                             "directly the colon)",
                             config_quote_len(name), name.at);
    if (value.len == 0)
        return config_refuse(ret_reason, "`%.*s` has no value behind the colon", len, text.at);
    if (scan_field_value_end(value.at, value.len) < value.len)
        return config_refuse(ret_reason,
                             "the value of `%.*s` has a control byte, such as a line "
                             "break",
                             config_quote_len(name), name.at);
    for (const char *const *own = own_fields; *own; own++)
        if (span_equal_nocase(name, span_text(*own)))
            return config_refuse(ret_reason, "weir itself says %s where it applies; leave it out",
                                 *own);
    if (span_equal_nocase(name, SPAN("Server")))
        return config_refuse(ret_reason, "for Server there is the setting `server-header`");
    *ret_line =
        config_arena_print(arena, "%.*s: %.*s", (int)name.len, name.at, (int)value.len, value.at);
    return true;
}
