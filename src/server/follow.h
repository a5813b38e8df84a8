/* SPDX-License-Identifier: MIT
 *
 * Changes on the disk that the master follows without a reload:
 *
 * - a replaced folder of a site (server/roots.h)
 * - a replaced certificate (server/tls.h)
 * - a changed list of users (server/auth.h)
 * - changed rules of a site (server/sitefiles.h)
 *
 * Each change starts a generation with the same
 * configuration. This module finds the changes and reports their outcome.
 */
#pragma once

#include "server/generation.h"
#include "server/stats.h"

enum server_follow { FOLLOW_NONE, FOLLOW_FOLDER, FOLLOW_CERTIFICATE, FOLLOW_USERS, FOLLOW_RULES };

/* Returns and logs a change since the serving generation was made, if the next look is due. */
enum server_follow server_follow_check(struct server_generation *serving, struct server_look *look,
                                       uint64_t now_ns);

/* When the next look is due, or `due_ns` if that is earlier. */
uint64_t server_follow_due_ns(const struct server_generation *serving, uint64_t due_ns);

/* The new generation serves. */
void server_follow_report(enum server_follow change);

/* The new generation, `refused` or NULL, cannot serve for the reason `why`. Logs it, and has the
 * change tried again when that makes sense. Counts a file that was refused. */
void server_follow_refuse(enum server_follow change, struct server_generation *serving,
                          const struct server_generation *refused, const char *why,
                          struct server_stats *stats);
