/* SPDX-License-Identifier: MIT
 *
 * The logs of the whole server, when their files have been renamed (SIGUSR1).
 */
#pragma once

#include "server/generation.h"
#include "server/page.h"

/* Opens every log anew, here and in all processes of the server. */
void server_logs_reopen(struct server_generation *first, const struct server_page *page);
