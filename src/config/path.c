/* SPDX-License-Identifier: MIT */
#include "config/path.h"

#include "log/message.h"

#include <limits.h>
#include <stdlib.h>

/* The length of the path up to and with its last `..`; 0: it has none. */
static size_t length_with_parents(const char *path)
{
    size_t found = 0, start = 0;
    for (size_t i = 0; start <= i; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        if (i - start == 2 && path[start] == '.' && path[start + 1] == '.')
            found = i;
        if (path[i] == '\0')
            break;
        start = i + 1;
    }
    return found;
}

static const char *join(struct config_arena *arena, struct span folder, struct span path)
{
    bool alone = path.at[0] == '/' || folder.len == 0;
    const char *joined = alone ? config_arena_copy(arena, path)
                               : config_arena_print(arena, "%.*s%.*s", (int)folder.len, folder.at,
                                                    (int)path.len, path.at);
    char resolved[PATH_MAX];
    size_t len = length_with_parents(joined);
    if (len == 0 || !realpath(config_arena_copy(arena, span_of(joined, len)), resolved))
        return joined;
    const char *rest = joined + len;
    if (strlen(resolved) + strlen(rest) >= CONFIG_PATH_MAX)
        return joined;
    bool top = resolved[1] == '\0' && *rest; /* "/" and "/etc" are one path together */
    return config_arena_print(arena, "%s%s", top ? "" : resolved, rest);
}

/* A log that goes to a socket. */
static bool check_message(struct span text, struct config_arena *arena, const char **ret_text,
                          struct config_reason *ret_reason)
{
    *ret_text = config_arena_copy(arena, text);
    return log_message_is_valid(*ret_text) ||
           config_problem_refuse(ret_reason,
                                 "`%.*s` names no socket; write journal, syslog:, syslog:/path or "
                                 "syslog:udp://192.0.2.1:514",
                                 config_problem_quote_len(text), text.at);
}

/* Words that switch a log on or off elsewhere, or name a stream there. */
static bool is_stream_name(struct span text)
{
    static const char *const words[] = { "on",    "yes",    "true",   "none",  "no",
                                         "false", "stdout", "stderr", "syslog" };
    bool found = false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !found; i++)
        found = span_equal_nocase(text, span_text(words[i]));
    return found;
}

bool config_path_check(const struct config_setting *setting, struct span text, struct span folder,
                       struct config_arena *arena, const char **ret_text,
                       struct config_reason *ret_reason)
{
    bool log = setting->kind == CONFIG_LOG || setting->kind == CONFIG_LOG_OR_OFF;
    bool off = span_equal(text, SPAN("off"));
    bool may_be_off = setting->kind == CONFIG_LOG_OR_OFF || setting->kind == CONFIG_USERS;
    if ((log && span_equal(text, SPAN("-"))) || (off && may_be_off)) {
        *ret_text = config_arena_copy(arena, text);
        return true;
    }
    if (log && log_message_kind(config_arena_copy(arena, text)) != LOG_MESSAGE_NONE)
        return check_message(text, arena, ret_text, ret_reason);
    if (log && off)
        return config_problem_refuse(
            ret_reason, "the error log cannot be turned off; write a file, or - for standard "
                        "error");
    if (log && is_stream_name(text))
        return config_problem_refuse(
            ret_reason,
            "`%.*s` would be a file of that name; write - (standard %s), journal, syslog:%s or "
            "./%.*s",
            config_problem_quote_len(text), text.at,
            setting->kind == CONFIG_LOG ? "error" : "output",
            setting->kind == CONFIG_LOG ? "" : ", off", config_problem_quote_len(text), text.at);
    if (folder.len + text.len >= CONFIG_PATH_MAX)
        return config_problem_refuse(ret_reason, "the path is longer than the system allows");
    if (span_starts(text, SPAN("~")) && (text.len == 1 || text.at[1] == '/'))
        return config_problem_refuse(ret_reason, "`~` is not replaced here; write the whole path");
    if (span_starts(text, SPAN("$")))
        return config_problem_refuse(ret_reason,
                                     "`$` is not replaced here; write the whole path, or ./%.*s",
                                     config_problem_quote_len(text), text.at);
    *ret_text = join(arena, folder, text);
    return true;
}
