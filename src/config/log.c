/* SPDX-License-Identifier: MIT */
#include "config/log.h"

#include "base/nearest.h"
#include "base/num.h"
#include "log/layout.h"

bool config_log_check_format(struct span text, struct config_reason *ret_reason)
{
    static const char *const names[] = { "combined", "json", NULL };
    const struct log_layout_request request = { .format = text };
    struct log_layout layout;
    char why[LOG_LAYOUT_WHY_MAX];
    if (!log_layout_is_own(text))
        return true;
    if (!memchr(text.at, '$', text.len) && !memchr(text.at, '%', text.len)) {
        const char *nearest = nearest_of(text, names);
        return config_problem_refuse(ret_reason,
                                     "`%.*s` is not combined, json or a text with variables such "
                                     "as $remote_addr%s%s%s",
                                     config_problem_quote_len(text), text.at,
                                     nearest ? "; did you mean `" : "", nearest ? nearest : "",
                                     nearest ? "`?" : "");
    }
    return log_layout_make(&layout, &request, why) ||
           config_problem_refuse(ret_reason, "in `%.*s` %s", config_problem_quote_len(text),
                                 text.at, why);
}

bool config_log_read_sample(struct span text, uint64_t *ret_value)
{
    const struct span part = SPAN("1/");
    return num_parse_u64(span_starts(text, part) ? span_skip(text, part.len) : text, ret_value);
}

bool config_log_check_sample(struct span text, uint64_t most, struct config_reason *ret_reason)
{
    uint64_t value;
    if (config_log_read_sample(text, &value) && value > 0 && value <= most)
        return true;
    return config_problem_refuse(ret_reason,
                                 "`%.*s` is not a number from 1 to %llu; write 10 or 1/10 to log "
                                 "one of ten requests",
                                 config_problem_quote_len(text), text.at, (unsigned long long)most);
}

/* The master empties the pid file at the start, and removes it at the end. */
static void check_pid_file(struct config_store *store, enum config_setting_place log)
{
    const struct config_item *item = config_store_first(&store->server, log);
    const struct config_item *pid_file = config_store_first(&store->server, SETTING_pid_file);
    if (item && pid_file && strcmp(item->text, pid_file->text) == 0)
        config_problem_error(&store->problems, pid_file->origin,
                             "%s`%s` is the file of `%s`, too; choose another file",
                             config_store_label(store, SETTING_pid_file, pid_file->origin),
                             pid_file->text, config_setting_table[log].name);
}

/* A format of the operator's names all its fields. */
void config_log_verify(struct config_store *store)
{
    check_pid_file(store, SETTING_access_log);
    check_pid_file(store, SETTING_error_log);
    const struct config_item *format = config_store_first(&store->server, SETTING_log_format);
    const struct config_item *fields = config_store_first(&store->server, SETTING_log_fields);
    if (!format || !fields || !log_layout_is_own(span_text(format->text)))
        return;
    config_problem_warning(&store->problems, fields->origin,
                           "%sthis has no effect on a format of your own; write the variables in "
                           "`log-format`",
                           config_store_label(store, SETTING_log_fields, fields->origin));
}
