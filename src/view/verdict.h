/* SPDX-License-Identifier: MIT
 *
 * What is wrong with a server, why, and what to change: numbers turned into sentences.
 * verdicts.def lists them; each is a function in verdict.c.
 */
#pragma once

#include "view/view.h"

enum view_gravity { VIEW_NOTE, VIEW_WARNING, VIEW_WRONG };

struct view_verdict {
    enum view_gravity gravity;
    const char *rule; /* its name: "accept-queue-overflow" */
    char text[256];   /* what is wrong now, with numbers */
    char why[256];    /* why, as far as that can be known */
    char cure[256];   /* what to change */
};

enum { VIEW_VERDICTS_MAX = 32 };

/* What is wrong now or was within the last minute, the gravest first. `before` is an earlier view
 * of the same server (for shares of CPU time); NULL: what needs it is judged by the time since the
 * start. Returns how many. */
size_t view_verdicts(const struct view *view, const struct view *before,
                     struct view_verdict out[VIEW_VERDICTS_MAX]);

/* "note", "warning", "wrong". */
const char *view_gravity_name(enum view_gravity gravity);
