/* SPDX-License-Identifier: MIT */
#include "config/dictionary.h"

/* Whether browsers read the byte in a pattern as this server does (URL Pattern standard). */
static bool is_plain(char c)
{
    return c > ' ' && c < 0x7f && !strchr(":(){}?+#\\\"%", c);
}

/* The pattern as browsers match it: one star stands for any bytes, also for slashes. Empty: it
 * has a byte that browsers read in another way. */
static struct span make_line(struct config_store *store, const char *pattern)
{
    const size_t len = strlen(pattern);
    char *match = config_arena_take(&store->arena, len + 1);
    size_t match_len = 0;
    for (size_t i = 0; i < len; i++) {
        if (!is_plain(pattern[i]))
            return SPAN("");
        if (pattern[i] != '*' || match_len == 0 || match[match_len - 1] != '*')
            match[match_len++] = pattern[i];
    }
    return span_text(config_arena_print(&store->arena, "Use-As-Dictionary: match=\"%.*s\"\r\n",
                                        (int)match_len, match));
}

void config_dictionary_make(struct config_store *store, const struct config_section_values *values,
                            const char *pattern, struct rules_rule *rule)
{
    const struct config_item *item = config_store_first(values, SETTING_path_dictionary);
    rule->dictionary_line = make_line(store, pattern);
    if (rule->dictionary_line.len == 0)
        config_problem_error(&store->problems, item->origin,
                             "dictionary: browsers read a character of the pattern `%s` in "
                             "another way. Letters, digits and - . _ ~ ! $ & ' , ; = @ / * "
                             "are possible",
                             pattern);
    if (rule->auth == RULES_ON || rule->network_count > 0 || rule->action != RULES_SERVE)
        config_problem_warning(&store->problems, item->origin,
                               "dictionary: this has no effect in a section with auth, allow, "
                               "deny, redirect, rewrite or status. Only files that every client "
                               "gets are dictionaries");
}
