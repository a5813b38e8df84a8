/* SPDX-License-Identifier: MIT
 *
 * The verdicts on the server itself: its processes, its configuration, its logs, its certificates
 * and its numbers. view/verdict.c has those on connections and on work, and calls all of them.
 */
#pragma once

#include "view/verdict.h"

struct view_window;

/* A certificate ends soon. Two weeks are time to find out why an automatic renewal has not
 * happened. Certificates of short life are renewed at a third of it, so 90 days leave 30. */
enum { VIEW_DAY_S = 24 * 3600, VIEW_CERTIFICATE_SOON_S = 14 * VIEW_DAY_S };

bool view_health_not_running(const struct view_window *w, struct view_verdict *out);
bool view_health_master_hangs(const struct view_window *w, struct view_verdict *out);
bool view_health_calls_refused(const struct view_window *w, struct view_verdict *out);
bool view_health_workers_die(const struct view_window *w, struct view_verdict *out);
bool view_health_statistics_damaged(const struct view_window *w, struct view_verdict *out);
bool view_health_reload_failed(const struct view_window *w, struct view_verdict *out);
bool view_health_log_lines_dropped(const struct view_window *w, struct view_verdict *out);
bool view_health_logs_not_reopened(const struct view_window *w, struct view_verdict *out);
bool view_health_numbers_incomplete(const struct view_window *w, struct view_verdict *out);
bool view_health_folder_gone(const struct view_window *w, struct view_verdict *out);
bool view_health_certificates_stale(const struct view_window *w, struct view_verdict *out);
bool view_health_users_stale(const struct view_window *w, struct view_verdict *out);
bool view_health_site_rules_refused(const struct view_window *w, struct view_verdict *out);
bool view_health_certificates_end(const struct view_window *w, struct view_verdict *out);
