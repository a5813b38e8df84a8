/* SPDX-License-Identifier: MIT
 *
 * --help, printed from the tables of options in lines of 80 columns.
 */
#pragma once

#include "option/option.h"

/* Prints `text`, wrapped, in the second column. `at` characters already stand on the line. */
void option_help_column(FILE *out, size_t at, const char *text);

/* One option: how it is written, and `sentence` beside it. */
void option_help_option(FILE *out, const struct option *option, const char *sentence);

/* Groups up to the one without options, each with its title. */
void option_help_groups(FILE *out, const struct option_group *groups);
