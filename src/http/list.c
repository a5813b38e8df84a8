/* SPDX-License-Identifier: MIT
 *
 * Splitting at commas outside quoted strings. A string that is not closed reaches to the end of
 * the list. Which commas are inside it is unknown, so the rest stays one element.
 */
#include "http/list.h"

/* The index of the first comma outside quotes, or the length. */
static size_t find_comma(struct span text)
{
    bool quoted = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '"')
            quoted = !quoted;
        else if (c == '\\' && quoted)
            i++;
        else if (c == ',' && !quoted)
            return i;
    }
    return text.len;
}

bool http_list_next(struct span *list, struct span *ret_element)
{
    while (list->len > 0) {
        size_t end = find_comma(*list);
        struct span element = span_trim(span_first(*list, end));
        *list = span_skip(*list, end < list->len ? end + 1 : end);
        if (element.len > 0) {
            *ret_element = element;
            return true;
        }
    }
    return false;
}

bool http_list_has(struct span list, struct span token)
{
    struct span element;

    while (http_list_next(&list, &element))
        if (span_equal_nocase(element, token))
            return true;
    return false;
}
