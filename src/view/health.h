/* SPDX-License-Identifier: MIT
 *
 * The verdicts on the server itself: its processes, its configuration, its logs, its certificates
 * and its numbers. view/verdict.c has those on connections and on work, and calls all of them.
 */
#pragma once

#include "view/verdict.h"

struct view_window;

bool view_health_not_running(const struct view_window *w, struct view_verdict *out);
bool view_health_master_hangs(const struct view_window *w, struct view_verdict *out);
bool view_health_calls_refused(const struct view_window *w, struct view_verdict *out);
bool view_health_workers_die(const struct view_window *w, struct view_verdict *out);
bool view_health_statistics_damaged(const struct view_window *w, struct view_verdict *out);
bool view_health_reload_failed(const struct view_window *w, struct view_verdict *out);
bool view_health_log_lines_dropped(const struct view_window *w, struct view_verdict *out);
bool view_health_logs_not_reopened(const struct view_window *w, struct view_verdict *out);
bool view_health_numbers_incomplete(const struct view_window *w, struct view_verdict *out);
bool view_health_certificates_stale(const struct view_window *w, struct view_verdict *out);
bool view_health_certificates_end(const struct view_window *w, struct view_verdict *out);
