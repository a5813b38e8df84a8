/* SPDX-License-Identifier: MIT
 *
 * The rules by which verdicts are given. Private to verdicts.
 */
#pragma once

#include "view/verdict.h"
#include "view/window.h"

/* Each judges one thing. True: it is so, and `verdict` says what, all but the rule's name; its
 * texts were empty. */
struct view_rule {
    const char *name;
    bool (*judge)(const struct view_window *window, struct view_verdict *verdict);
};

/* NULL name at the end; at most VIEW_VERDICTS_MAX. */
extern const struct view_rule view_rules[];
