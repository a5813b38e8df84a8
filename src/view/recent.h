/* SPDX-License-Identifier: MIT
 *
 * The last answers that failed, were slow or were cut, of all kinds and the newest first.
 */
#pragma once

#include "view/view.h"

enum { VIEW_RECENT_MAX = STATS_RECENT_KINDS * STATS_RECENT_MAX };

struct view_answer {
    const struct stats_answer *answer; /* of the view's snapshot */
    enum stats_recent_kind kind;
    uint64_t age_ns;
    const char *site; /* its name; empty: none */
    char cause[128];  /* a phrase without its full stop */
};

/* Returns how many there are. */
size_t view_recent(const struct view *view, struct view_answer out[VIEW_RECENT_MAX]);

/* The answers in words, with the setting `stats-slow`: "answers that failed, took 1.00 s or longer,
 * or were cut". */
enum { VIEW_RECENT_TITLE = 80 };
void view_recent_title(const struct view *view, char out[VIEW_RECENT_TITLE]);

/* "4xx", "5xx", "slow", "cut". */
const char *view_recent_kind_name(enum stats_recent_kind kind);

/* The method and the target as one line without unsafe bytes. An empty one becomes "-". */
enum { VIEW_RECENT_TEXT = STATS_ANSWER_TEXT_MAX * 4 + 1 };
void view_recent_say(const struct view_answer *answer, char out[VIEW_RECENT_TEXT]);
