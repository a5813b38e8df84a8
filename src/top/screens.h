/* SPDX-License-Identifier: MIT
 *
 * The screens. Each draws itself into rows of a canvas, keeps its selected line within range,
 * and returns the meaning of that line. The text may be empty, and is valid until the screen is
 * drawn again.
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
const char *top_recent_draw(struct top_frame *frame, struct top_canvas *canvas,
                            struct top_area area);
