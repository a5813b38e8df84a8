/* SPDX-License-Identifier: MIT
 *
 * The screens. Each draws itself into rows of a canvas, settles which line is chosen, and
 * returns what that line means, which may be empty and is lent until it is drawn again.
 */
#pragma once

#include "top/frame.h"

const char *top_overview_draw(struct top_frame *frame, struct top_canvas *canvas,
                              struct top_area area);
const char *top_counters_draw(struct top_frame *frame, struct top_canvas *canvas,
                              struct top_area area);
const char *top_sites_draw(struct top_frame *frame, struct top_canvas *canvas,
                           struct top_area area);
const char *top_workers_draw(struct top_frame *frame, struct top_canvas *canvas,
                             struct top_area area);
const char *top_latency_draw(struct top_frame *frame, struct top_canvas *canvas,
                             struct top_area area);
