/* SPDX-License-Identifier: MIT */
#include "config/hint.h"

/* Words that a setting of ours stands for. */
static const struct foreign {
    const char *theirs, *ours, *value;
} foreign_settings[] = {
#define NAMED(theirs, ours, value) { theirs, ours, value },
#define ADVICE(word, sentence)
#include "config/hints.def"
#undef NAMED
#undef ADVICE
};

/* Words that no setting stands for, and what to write in their place. */
static const struct advice {
    const char *word, *sentence;
} other_words[] = {
#define NAMED(theirs, ours, value)
#define ADVICE(word, sentence) { word, sentence },
#include "config/hints.def"
#undef NAMED
#undef ADVICE
};

static char fold(char c)
{
    return c == '_' ? '-' : ascii_lower(c);
}

/* Whether a row of hints.def stands for the word. */
static bool covers(const char *row, struct span word)
{
    struct span name = span_text(row);
    if (span_ends(name, SPAN("*"))) {
        name.len--;
        return span_equal_nocase(span_first(word, name.len), name);
    }
    bool same = word.len == name.len;
    for (size_t i = 0; same && i < name.len; i++)
        same = fold(word.at[i]) == fold(name.at[i]);
    return same;
}

static const struct foreign *find_foreign(struct span word)
{
    for (size_t i = 0; i < sizeof(foreign_settings) / sizeof(foreign_settings[0]); i++)
        if (covers(foreign_settings[i].theirs, word))
            return &foreign_settings[i];
    return NULL;
}

static const char *find_advice(struct span word)
{
    for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++)
        if (covers(other_words[i].word, word))
            return other_words[i].sentence;
    return NULL;
}

static const struct config_setting *setting_of(const struct foreign *foreign)
{
    return config_setting_find_anywhere(span_text(foreign->ours));
}

static const char *value_of(const struct foreign *foreign, const struct config_setting *setting)
{
    return foreign && foreign->value ? foreign->value : config_setting_placeholder(setting);
}

const char *config_hint_heading(enum config_section section)
{
    return section == CONFIG_SERVER ? "[server]"
           : section == CONFIG_SITE ? "[site NAME]"
                                    : "[path PATTERN]";
}

static bool explain_foreign(struct span word, struct config_reason *ret_reason)
{
    const struct foreign *foreign = find_foreign(word);
    if (!foreign)
        return false;
    const struct config_setting *ours = setting_of(foreign);
    (void)config_problem_refuse(ret_reason, "`%.*s` is called `%s` here; write `%s = %s` under %s",
                                config_problem_quote_len(word), word.at, ours->name, ours->name,
                                value_of(foreign, ours), config_hint_heading(ours->section));
    return true;
}

static bool explain_other(struct span word, struct config_reason *ret_reason)
{
    const char *sentence = find_advice(word);
    if (!sentence)
        return false;
    (void)config_problem_refuse(ret_reason, "there is no `%.*s` here; %s",
                                config_problem_quote_len(word), word.at, sentence);
    return true;
}

bool config_hint_explain(struct span text, struct config_reason *ret_reason)
{
    struct span rest = text;
    struct span word = span_take_word(&rest);
    if (span_ends(word, SPAN(";")))
        word = span_first(word, word.len - 1);
    /* Some names of Apache differ from ours only in their case. */
    const struct config_setting *setting = config_setting_find_anywhere(word);
    if (!setting && (explain_foreign(word, ret_reason) || explain_other(word, ret_reason)))
        return true;
    if (span_ends(text, SPAN("{")) || span_equal(text, SPAN("}"))) {
        (void)config_problem_refuse(ret_reason,
                                    "there are no braces; a line [server] or [site NAME] begins a "
                                    "section, which ends where the next one begins");
        return true;
    }
    if (span_starts(text, SPAN("<"))) {
        (void)config_problem_refuse(ret_reason,
                                    "a line [site NAME] or [path PATTERN] begins a section, which "
                                    "ends where the next one begins");
        return true;
    }
    if (!setting || word.len == text.len)
        return false;
    (void)config_problem_refuse(ret_reason,
                                "a value follows `=`, and no `;` ends it; write `%s = %s`",
                                setting->name, config_setting_placeholder(setting));
    return true;
}

/* A shell takes a value with a space or `*` apart. */
static void explain_flag(struct span name, const struct config_setting *setting, const char *value,
                         struct config_reason *ret_reason)
{
    const char *quote = strpbrk(value, " *") ? "'" : "";
    (void)config_problem_refuse(ret_reason, "there is no --%.*s; write --%s %s%s%s",
                                config_problem_quote_len(name), name.at, setting->name, quote,
                                value, quote);
}

bool config_hint_explain_option(struct span name, struct config_reason *ret_reason)
{
    const int len = config_problem_quote_len(name);
    const struct config_setting *setting = config_setting_find_anywhere(name);
    const struct foreign *foreign = setting ? NULL : find_foreign(name);
    const char *sentence = setting || foreign ? NULL : find_advice(name);
    if (foreign)
        setting = setting_of(foreign);
    if (sentence)
        (void)config_problem_refuse(ret_reason, "there is no --%.*s; %s", len, name.at, sentence);
    else if (!setting)
        return false;
    else if (setting == &config_setting_table[SETTING_root])
        (void)config_problem_refuse(
            ret_reason, "there is no --%.*s; the folder goes without an option: weir DIR", len,
            name.at);
    else if (config_setting_has_flag(setting))
        explain_flag(name, setting, value_of(foreign, setting), ret_reason);
    else
        (void)config_problem_refuse(ret_reason,
                                    "there is no --%.*s; in a file (-c FILE) write `%s = %s` under "
                                    "%s",
                                    len, name.at, setting->name, value_of(foreign, setting),
                                    config_hint_heading(setting->section));
    return true;
}

/* Whether quotes, `;` and `#` can be a part of such a value. */
static bool is_free_text(const struct config_setting *setting)
{
    return setting->kind == CONFIG_HEADER || setting->kind == CONFIG_RULE ||
           setting->kind == CONFIG_FORMAT;
}

struct span config_hint_strip(const struct config_setting *setting, struct span value)
{
    if (is_free_text(setting))
        return value;
    if (span_ends(value, SPAN(";")))
        value = span_trim(span_first(value, value.len - 1));
    const struct span open[] = { SPAN("\u201c"), SPAN("\u2018") };
    const struct span close[] = { SPAN("\u201d"), SPAN("\u2019") };
    for (size_t i = 0; i < 2; i++)
        if (span_starts(value, open[i]) && span_ends(value, close[i]))
            return span_trim(
                span_of(value.at + open[i].len, value.len - open[i].len - close[i].len));
    char first = value.len > 1 ? value.at[0] : 0;
    if ((first == '"' || first == '\'') && value.at[value.len - 1] == first)
        value = span_trim(span_of(value.at + 1, value.len - 2));
    return value;
}

bool config_hint_has_comment(const struct config_setting *setting, struct span value)
{
    for (size_t i = 1; i < value.len && !is_free_text(setting); i++)
        if (value.at[i] == '#' && (value.at[i - 1] == ' ' || value.at[i - 1] == '\t'))
            return true;
    return false;
}
