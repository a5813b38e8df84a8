/* SPDX-License-Identifier: MIT
 *
 * How busy the workers of a window are, in numbers and in words for a verdict.
 */
#pragma once

#include "view/verdict.h"
#include "view/window.h"

#define VIEW_BUSY 0.9 /* of the CPU time that a worker could use */

/* How many workers are busy. They come first in the window. */
size_t view_busy_count(const struct view_window *w);

/* The mean of the workers from number `from` on. */
double view_busy_mean(const struct view_window *w, size_t from);

/* Jain's index: 1 when all do as much, 1/n when one does everything. */
double view_busy_fairness(const struct view_window *w);

/* "1 of 8 workers is busy 98 %, the others 12 %" */
void view_busy_say(const struct view_window *w, char out[VIEW_VERDICT_TEXT]);

/* Names the setting that brings more CPUs into use, if any are idle. */
void view_busy_say_cure(const struct view_window *w, char out[VIEW_VERDICT_TEXT]);
