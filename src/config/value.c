/* SPDX-License-Identifier: MIT */
#include "config/value.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/nearest.h"
#include "base/num.h"
#include "config/address.h"
#include "config/auth.h"
#include "config/config.h"
#include "config/field.h"
#include "config/log.h"
#include "config/path.h"
#include "config/rate.h"
#include "config/rules.h"
#include "config/types.h"

/* ---- numbers ---- */

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit size_units[] = {
    { "K", 1024 }, { "M", 1024 * 1024 }, { "G", 1024 * 1024 * 1024 }, { "", 1 }, { NULL, 0 },
};

/* Digits and directly after them one of the units, in upper or lower case. */
static bool parse_size(struct span text, uint64_t *ret_value)
{
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    uint64_t number, value;
    if (!num_parse_u64(span_first(text, digits), &number))
        return false;
    struct span suffix = span_skip(text, digits);
    for (const struct unit *unit = size_units; unit->suffix; unit++) {
        if (!span_equal_nocase(suffix, span_text(unit->suffix)))
            continue;
        if (__builtin_mul_overflow(number, unit->factor, &value))
            return false;
        *ret_value = value;
        return true;
    }
    return false;
}

static bool parse_count(struct span text, uint64_t *ret_value)
{
    if (span_equal(text, SPAN("auto"))) {
        *ret_value = 0;
        return true;
    }
    return num_parse_u64(text, ret_value);
}

static bool check_count(const struct config_setting *setting, struct span text,
                        struct config_reason *ret_reason)
{
    uint64_t value;
    bool may_be_auto = setting->kind != CONFIG_ENTRIES;
    if (may_be_auto && span_equal(text, SPAN("auto")))
        return true;
    if (num_parse_u64(text, &value) && value > 0 && value <= setting->most)
        return true;
    return config_problem_refuse(ret_reason, "`%.*s` is not a number from 1 to %llu%s",
                                 config_problem_quote_len(text), text.at,
                                 (unsigned long long)setting->most, may_be_auto ? ", or auto" : "");
}

static bool check_limit(const struct config_setting *setting, struct span text,
                        struct config_reason *ret_reason)
{
    uint64_t value;
    if (num_parse_u64(text, &value) && value <= setting->most)
        return true;
    return config_problem_refuse(ret_reason, "`%.*s` is not a number from 1 to %llu, or 0 for %s",
                                 config_problem_quote_len(text), text.at,
                                 (unsigned long long)setting->most,
                                 setting->kind == CONFIG_PERCENT ? "none" : "no limit");
}

static bool check_size(const struct config_setting *setting, struct span text,
                       struct config_reason *ret_reason)
{
    uint64_t value;
    if (setting->kind == CONFIG_BODY && span_equal(text, SPAN("auto")))
        return true;
    if (!parse_size(text, &value))
        return config_problem_refuse(
            ret_reason, "`%.*s` is not a size; write a number of bytes, or 256K, 64M, 1G",
            config_problem_quote_len(text), text.at);
    if (value > setting->most)
        return config_problem_refuse(ret_reason, "`%.*s` is too much; at most %lluG",
                                     config_problem_quote_len(text), text.at,
                                     (unsigned long long)(setting->most >> 30));
    return true;
}

static bool check_duration(const struct config_setting *setting, struct span text,
                           struct config_reason *ret_reason)
{
    uint64_t value, number;
    if (!duration_parse(text, &value)) {
        if (num_parse_u64(text, &number))
            return config_problem_refuse(ret_reason,
                                         "`%.*s` has no unit; write %.*ss for seconds, or use "
                                         "ms, m or h",
                                         config_problem_quote_len(text), text.at,
                                         config_problem_quote_len(text), text.at);
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a time; write 500ms, 10s, 2m or 1h, or 0 for "
                                     "none",
                                     config_problem_quote_len(text), text.at);
    }
    if (value / DURATION_SECOND > setting->most)
        return config_problem_refuse(ret_reason, "`%.*s` is too long; at most %lluh",
                                     config_problem_quote_len(text), text.at,
                                     (unsigned long long)setting->most / 3600);
    return true;
}

/* Seconds: `off` is CONFIG_NEVER, and days have the unit d. */
static bool parse_age(struct span text, uint64_t *ret_seconds)
{
    uint64_t value;
    if (span_equal(text, SPAN("off"))) {
        *ret_seconds = CONFIG_NEVER;
        return true;
    }
    bool days = span_ends(text, SPAN("d"));
    if (days ? !num_parse_u64(span_first(text, text.len - 1), &value) ||
                   __builtin_mul_overflow(value, 24 * 3600, &value)
             : !duration_parse(text, &value))
        return false;
    *ret_seconds = days ? value : value / DURATION_SECOND;
    return true;
}

static bool check_age(const struct config_setting *setting, struct span text,
                      struct config_reason *ret_reason)
{
    uint64_t value;
    if (!parse_age(text, &value))
        return config_problem_refuse(ret_reason, "`%.*s` is not a time; write off, 12h or 365d",
                                     config_problem_quote_len(text), text.at);
    if (value != CONFIG_NEVER && value > setting->most)
        return config_problem_refuse(ret_reason, "`%.*s` is too long; at most %llud",
                                     config_problem_quote_len(text), text.at,
                                     (unsigned long long)setting->most / (24 * 3600));
    return true;
}

/* ---- words and paths ---- */

static bool check_choice(const char *const *choices, struct span text,
                         struct config_reason *ret_reason)
{
    char storage[256];
    struct buf all = buf_over(storage, sizeof(storage));
    for (const char *const *choice = choices; *choice; choice++) {
        if (span_equal(text, span_text(*choice)))
            return true;
        if (choice > choices)
            buf_add(&all, choice[1] ? SPAN(", ") : SPAN(" or "));
        buf_add(&all, span_text(*choice));
    }
    const char *nearest = nearest_of(text, choices);
    if (nearest)
        return config_problem_refuse(ret_reason, "`%.*s` is not %.*s; did you mean `%s`?",
                                     config_problem_quote_len(text), text.at, (int)all.len, all.at,
                                     nearest);
    return config_problem_refuse(ret_reason, "`%.*s` is not %.*s", config_problem_quote_len(text),
                                 text.at, (int)all.len, all.at);
}

/* Letters, digits and . _ - + at most `most` bytes. */
static bool check_name(struct span text, size_t most, const char *what,
                       struct config_reason *ret_reason)
{
    bool good = text.len <= most;
    for (size_t i = 0; i < text.len && good; i++) {
        char c = ascii_lower(text.at[i]);
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._-+", c));
    }
    const char *colon = good ? NULL : memchr(text.at, ':', text.len);
    if (colon)
        return config_problem_refuse(
            ret_reason, "`%.*s` has a group; write %.*s: the workers get its groups",
            config_problem_quote_len(text), text.at, (int)(colon - text.at), text.at);
    return good || config_problem_refuse(ret_reason, "`%.*s` is not the name of a %s",
                                         config_problem_quote_len(text), text.at, what);
}

/* TCP_CA_NAME_MAX is 16, with its NUL. */
static bool check_system_name(const struct config_setting *setting, struct span text,
                              struct config_reason *ret_reason)
{
    return setting->kind == CONFIG_USER ? check_name(text, 32, "user", ret_reason)
                                        : check_name(text, 15, "congestion control", ret_reason);
}

static bool check_file_name(struct span text, struct config_reason *ret_reason)
{
    if (memchr(text.at, '/', text.len))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` has a slash; an index file is a name alone, looked "
                                     "for in each folder",
                                     config_problem_quote_len(text), text.at);
    if (span_equal(text, SPAN(".")) || span_equal(text, SPAN("..")) || text.len > 255)
        return config_problem_refuse(ret_reason, "`%.*s` is not the name of a file",
                                     config_problem_quote_len(text), text.at);
    return true;
}

/* Whether one of the path's segments is "." or "..". */
static bool has_dot_segment(struct span path)
{
    while (path.len > 0) {
        const char *slash = memchr(path.at, '/', path.len);
        size_t len = slash ? (size_t)(slash - path.at) : path.len;
        struct span segment = span_first(path, len);
        if (span_equal(segment, SPAN(".")) || span_equal(segment, SPAN("..")))
            return true;
        path = span_skip(path, slash ? len + 1 : len);
    }
    return false;
}

static bool check_below(const struct config_setting *setting, struct span text,
                        struct config_arena *arena, const char **ret_text,
                        struct config_reason *ret_reason)
{
    struct span path = text;
    if (setting->kind == CONFIG_FALLBACK && span_equal(text, SPAN("off")))
        return true;
    while (path.len > 0 && path.at[0] == '/')
        path = span_skip(path, 1);
    if (path.len == 0 || path.at[path.len - 1] == '/' || has_dot_segment(path))
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not a file below the root; write its path from "
                                     "there, such as index.html",
                                     config_problem_quote_len(text), text.at);
    *ret_text = config_arena_copy(arena, path);
    return true;
}

static bool check_control(const struct config_setting *setting, struct span text,
                          struct span folder, struct config_arena *arena, const char **ret_text,
                          struct config_reason *ret_reason)
{
    enum { PATH_OF_SOCKET_MAX = 107 };
    if (span_equal(text, SPAN("auto")) || span_equal(text, SPAN("off"))) {
        *ret_text = config_arena_copy(arena, text);
        return true;
    }
    const char *path = "";
    if (span_equal(text, SPAN("on")))
        return config_problem_refuse(ret_reason, "`on` is not a path; write auto");
    if (!config_path_check(setting, text, folder, arena, &path, ret_reason))
        return false;
    *ret_text = path;
    return strlen(path) <= PATH_OF_SOCKET_MAX ||
           config_problem_refuse(ret_reason,
                                 "the path is longer than %d bytes, the most that a socket "
                                 "may have",
                                 PATH_OF_SOCKET_MAX);
}

static bool check_address(const struct config_setting *setting, struct span text,
                          struct span folder, struct config_arena *arena, const char **ret_text,
                          struct config_reason *ret_reason)
{
    if (setting->kind == CONFIG_HOST)
        return config_address_check_host(text, arena, ret_text, ret_reason);
    return (setting->kind == CONFIG_PAGE && span_equal(text, SPAN("off"))) ||
           config_address_check(text, folder, arena, ret_text, ret_reason);
}

static bool check_network(const struct config_setting *setting, struct span text,
                          struct config_reason *ret_reason)
{
    return (setting->kind == CONFIG_PEER && span_equal(text, SPAN("unix"))) ||
           config_address_check_network(text, ret_reason);
}

/* Values whose form has a file of its own. */
static bool check_own_form(const struct config_setting *setting, struct span text,
                           struct config_arena *arena, const char **ret_text,
                           struct config_reason *ret_reason)
{
    if (setting->kind == CONFIG_TYPES)
        return config_types_check(text, arena, ret_text, ret_reason);
    return setting->kind == CONFIG_FORMAT
               ? config_log_check_format(text, ret_reason)
               : config_log_check_sample(text, setting->most, ret_reason);
}

static bool check_number(const struct config_setting *setting, struct span text,
                         struct config_reason *ret_reason)
{
    switch ((int)setting->kind) {
    case CONFIG_COUNT:
    case CONFIG_ENTRIES:
        return check_count(setting, text, ret_reason);
    case CONFIG_LIMIT:
    case CONFIG_PERCENT:
        return check_limit(setting, text, ret_reason);
    case CONFIG_RATE:
        return config_rate_check(text, setting->most, ret_reason);
    case CONFIG_BODY:
    case CONFIG_SIZE:
        return check_size(setting, text, ret_reason);
    case CONFIG_AGE:
        return check_age(setting, text, ret_reason);
    default:
        return check_duration(setting, text, ret_reason);
    }
}

/* ---- all of them ---- */

static bool check_by_kind(const struct config_setting *setting, struct span text,
                          struct span folder, struct config_arena *arena, const char **ret_text,
                          struct config_reason *ret_reason)
{
    switch (setting->kind) {
    case CONFIG_PAGE:
    case CONFIG_LISTEN:
    case CONFIG_HOST:
        return check_address(setting, text, folder, arena, ret_text, ret_reason);
    case CONFIG_HASH:
    case CONFIG_REALM:
        return config_auth_check(setting->kind, text, ret_reason);
    case CONFIG_NETWORK:
    case CONFIG_PEER:
        return check_network(setting, text, ret_reason);
    case CONFIG_HEADER:
        return config_field_check(text, arena, ret_text, ret_reason);
    case CONFIG_RULE:
    case CONFIG_CACHE:
    case CONFIG_FIELDS:
    case CONFIG_ORIGIN:
    case CONFIG_ACCESS:
    case CONFIG_REDIRECT:
    case CONFIG_REWRITE:
        return config_rules_check(setting->kind, text, arena, ret_text, ret_reason);
    case CONFIG_FALLBACK:
    case CONFIG_BELOW:
        return check_below(setting, text, arena, ret_text, ret_reason);
    case CONFIG_FOLDER:
    case CONFIG_FILE:
    case CONFIG_USERS:
    case CONFIG_INPUT:
    case CONFIG_LOG:
    case CONFIG_LOG_OR_OFF:
        return config_path_check(setting, text, folder, arena, ret_text, ret_reason);
    case CONFIG_CONTROL:
        return check_control(setting, text, folder, arena, ret_text, ret_reason);
    case CONFIG_NAME:
        return check_file_name(text, ret_reason);
    case CONFIG_WORD:
    case CONFIG_USER:
        return check_system_name(setting, text, ret_reason);
    case CONFIG_COUNT:
    case CONFIG_ENTRIES:
    case CONFIG_LIMIT:
    case CONFIG_RATE:
    case CONFIG_PERCENT:
    case CONFIG_BODY:
    case CONFIG_SIZE:
    case CONFIG_TIMEOUT:
    case CONFIG_DELAY:
    case CONFIG_AGE:
        return check_number(setting, text, ret_reason);
    case CONFIG_FORMAT:
    case CONFIG_SAMPLE:
    case CONFIG_TYPES:
        return check_own_form(setting, text, arena, ret_text, ret_reason);
    case CONFIG_MODEL:
    case CONFIG_ETAG:
    case CONFIG_LOG_FIELD:
    case CONFIG_FORWARDED:
    case CONFIG_LEVEL:
    case CONFIG_POLICY:
    case CONFIG_POOL:
    case CONFIG_SANDBOX:
    case CONFIG_STATUS:
    case CONFIG_TLS_POLICY:
    case CONFIG_TLS_VERSION:
    case CONFIG_SWITCH:
        return check_choice(config_setting_choices(setting->kind), text, ret_reason);
    }
    return false;
}

bool config_value_check(const struct config_setting *setting, struct span text, struct span folder,
                        struct config_arena *arena, const char **ret_text,
                        struct config_reason *ret_reason)
{
    if (text.len == 0)
        return config_problem_refuse(ret_reason, "a value is missing");
    if (setting->kind != CONFIG_FORMAT && text.len >= 2 && text.at[0] == text.at[text.len - 1] &&
        (text.at[0] == '"' || text.at[0] == '\''))
        return config_problem_refuse(ret_reason, "write the value without quotes");
    const char *canonical = NULL;
    if (!check_by_kind(setting, text, folder, arena, &canonical, ret_reason))
        return false;
    *ret_text = canonical ? canonical : config_arena_copy(arena, text);
    return true;
}

/* The number that a checked text means in the field. */
static bool read_number(enum config_kind kind, struct span text, uint64_t *ret_value)
{
    if (kind == CONFIG_COUNT)
        return parse_count(text, ret_value);
    if (kind == CONFIG_ENTRIES || kind == CONFIG_LIMIT || kind == CONFIG_PERCENT)
        return num_parse_u64(text, ret_value);
    if (kind == CONFIG_BODY && span_equal(text, SPAN("auto"))) {
        *ret_value = CONFIG_AUTO;
        return true;
    }
    if (kind == CONFIG_SIZE || kind == CONFIG_BODY)
        return parse_size(text, ret_value);
    if (kind == CONFIG_AGE)
        return parse_age(text, ret_value);
    if (kind == CONFIG_RATE)
        return config_rate_read(text, ret_value);
    if (kind == CONFIG_SAMPLE)
        return config_log_read_sample(text, ret_value);
    if (!duration_parse(text, ret_value))
        return false;
    if (kind == CONFIG_TIMEOUT && *ret_value == 0)
        *ret_value = CONFIG_FOREVER_NS;
    return true;
}

void config_value_store(const struct config_setting *setting, const char *const *texts,
                        void *section)
{
    void *field = (char *)section + setting->offset;
    struct span text = texts[0] ? span_text(texts[0]) : SPAN("");
    uint64_t value;
    switch (config_setting_type(setting->kind)) {
    case CONFIG_TYPE_LIST:
        *(const char *const **)field = texts;
        break;
    case CONFIG_TYPE_TEXT:
        *(const char **)field = texts[0];
        break;
    case CONFIG_TYPE_COUNT:
        CHECK(read_number(setting->kind, text, &value));
        *(unsigned *)field = (unsigned)value;
        break;
    case CONFIG_TYPE_NUMBER:
        CHECK(read_number(setting->kind, text, (uint64_t *)field));
        break;
    case CONFIG_TYPE_SWITCH:
        *(bool *)field = span_equal(text, SPAN("on"));
        break;
    }
}
