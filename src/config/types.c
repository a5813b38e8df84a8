/* SPDX-License-Identifier: MIT */
#include "config/types.h"

#include "base/buf.h"
#include "base/mediatype.h"

static bool is_ending(struct span ending)
{
    for (size_t i = 0; i < ending.len; i++)
        if (ending.at[i] == '/' || ending.at[i] == '.' || (unsigned char)ending.at[i] < ' ')
            return false;
    return ending.len > 0 && ending.len <= MEDIATYPE_ENDING_MAX;
}

static bool refuse_type(struct span type, struct config_reason *ret_reason)
{
    return config_problem_refuse(ret_reason,
                                 "`%.*s` is not a media type; write a type and its endings, such "
                                 "as text/x-rust rs",
                                 config_problem_quote_len(type), type.at);
}

/* Appends the endings in `rest`, each behind a space. */
static bool add_endings(struct buf *out, struct span rest, struct config_reason *ret_reason)
{
    struct span ending;
    while ((ending = span_take_word(&rest)).len > 0) {
        if (ending.at[0] == '.')
            ending = span_skip(ending, 1);
        if (!is_ending(ending))
            return config_problem_refuse(ret_reason,
                                         "`%.*s` is not an ending; write what follows the last dot "
                                         "of a name, such as rs",
                                         config_problem_quote_len(ending), ending.at);
        buf_add_char(out, ' ');
        for (size_t i = 0; i < ending.len; i++)
            buf_add_char(out, ascii_lower(ending.at[i]));
    }
    return true;
}

bool config_types_check(struct span text, struct config_arena *arena, const char **ret_text,
                        struct config_reason *ret_reason)
{
    if (span_equal(text, SPAN("system")))
        return true;
    struct span rest = text;
    const struct span type = span_take_word(&rest);
    if (!mediatype_valid(type))
        return refuse_type(type, ret_reason);
    if (span_trim(rest).len == 0)
        return config_problem_refuse(ret_reason,
                                     "`%.*s` has no ending; write the endings of its files behind "
                                     "it, such as text/x-rust rs",
                                     config_problem_quote_len(type), type.at);
    struct buf out = buf_over(config_arena_take(arena, text.len + 1), text.len);
    buf_add(&out, type);
    if (!add_endings(&out, rest, ret_reason))
        return false;
    *ret_text = out.at; /* the arena's memory is zeroed */
    return true;
}

void config_types_verify(struct config_store *store, const struct config_section_values *site)
{
    const struct config_item *const first = config_store_first(site, SETTING_types);
    for (const struct config_item *item = first; item; item = item->next) {
        struct span rest = span_text(item->text), ending;
        (void)span_take_word(&rest); /* the type */
        while ((ending = span_take_word(&rest)).len > 0) {
            const struct config_item *other = config_names_find(&store->names, first, ending);
            if (!other)
                config_names_set(&store->names, first, ending, item);
            else if (other != item)
                config_problem_error(&store->problems, item->origin,
                                     "%sthe ending `%.*s` has a type already; remove one of the "
                                     "two",
                                     config_store_label(store, SETTING_types, item->origin),
                                     config_problem_quote_len(ending), ending.at);
        }
    }
}
