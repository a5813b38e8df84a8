/* SPDX-License-Identifier: MIT
 *
 * The verdicts on HTTP/2: clients that exceed its limits, or that keep answers waiting.
 * view/verdict.c calls them.
 */
#pragma once

#include "view/verdict.h"

struct view_window;

bool view_http2_floods(const struct view_window *w, struct view_verdict *out);
bool view_http2_streams_refused(const struct view_window *w, struct view_verdict *out);
bool view_http2_stalls(const struct view_window *w, struct view_verdict *out);
