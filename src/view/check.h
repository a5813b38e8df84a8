/* SPDX-License-Identifier: MIT
 *
 * One line for monitoring, by the convention of Nagios and Icinga plugins: a state, a sentence, and
 * after a `|` numbers that the monitoring system can draw. The state is also the exit status. It
 * follows from the verdicts (view/verdict.h).
 */
#pragma once

#include "view/view.h"

/* The exit statuses of plugins. */
enum view_check_state {
    VIEW_CHECK_OK,
    VIEW_CHECK_WARNING,
    VIEW_CHECK_CRITICAL,
    VIEW_CHECK_UNKNOWN
};

/* Prints the line for a server. A verdict that is `wrong` is critical, and so is a server that does
 * not serve yet or any more. A `warning` is a warning, and a `note` is OK. */
enum view_check_state view_check_print(const struct view *view, FILE *out);

/* Prints a line without numbers. */
void view_check_print_problem(enum view_check_state state, const char *sentence, FILE *out);
