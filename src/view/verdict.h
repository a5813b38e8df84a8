/* SPDX-License-Identifier: MIT
 *
 * Verdicts: sentences that say what is wrong with a server, why, and what to change.
 * verdicts.def lists them. Each is a function in verdict.c, health.c or http2.c.
 */
#pragma once

#include "view/view.h"

enum view_gravity { VIEW_NOTE, VIEW_WARNING, VIEW_WRONG };

enum { VIEW_VERDICTS_MAX = 48, VIEW_VERDICT_TEXT = 256 };

struct view_verdict {
    enum view_gravity gravity;
    const char *rule;             /* its name: "accept-queue-overflow" */
    char text[VIEW_VERDICT_TEXT]; /* what is wrong now, with numbers */
    char why[VIEW_VERDICT_TEXT];  /* why, as far as the numbers show */
    char cure[VIEW_VERDICT_TEXT]; /* what to change */
};

/* Writes what is wrong now, or was within the last minute, the gravest first, and returns how
 * many. `before` is an earlier view of the same server, from which shares of CPU time are
 * measured. Without it (NULL) they are those since the server started. */
size_t view_verdicts(const struct view *view, const struct view *before,
                     struct view_verdict out[VIEW_VERDICTS_MAX]);

/* "note", "warning", "wrong". */
const char *view_verdict_gravity_name(enum view_gravity gravity);

/* Writes a text of a verdict. */
void view_verdict_say(char out[VIEW_VERDICT_TEXT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
