/* SPDX-License-Identifier: MIT */
#include "view/verdict.h"

#include "view/rules.h"

#include <string.h>

const char *view_gravity_name(enum view_gravity gravity)
{
    static const char *const names[] = { "note", "warning", "wrong" };
    return names[gravity];
}

/* Behind those that are as grave. */
static void insert(struct view_verdict out[VIEW_VERDICTS_MAX], size_t count,
                   const struct view_verdict *verdict)
{
    size_t at = count;
    while (at > 0 && out[at - 1].gravity < verdict->gravity)
        at--;
    memmove(&out[at + 1], &out[at], (count - at) * sizeof(*out));
    out[at] = *verdict;
}

size_t view_verdicts(const struct view *view, const struct view *before,
                     struct view_verdict out[VIEW_VERDICTS_MAX])
{
    struct view_window window;
    size_t count = 0;
    view_window_open(&window, view, before);
    for (const struct view_rule *rule = view_rules; rule->name; rule++) {
        struct view_verdict verdict = { .rule = rule->name };
        if (count < VIEW_VERDICTS_MAX && rule->judge(&window, &verdict))
            insert(out, count++, &verdict);
    }
    return count;
}
