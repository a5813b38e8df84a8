/* SPDX-License-Identifier: MIT
 *
 * Generations in a few words: what works, how many are at it, how a reload went.
 */
#pragma once

#include "server/generation.h"

enum { SERVER_SUMMARY_MAX = MODEL_WHY_MAX + 160 };

/* "model epoll, 1 worker x 1 thread", and why this model where it is not the one asked for.
 * NULL: nothing. */
void server_summary_describe(const struct server_generation *g, char out[SERVER_SUMMARY_MAX]);

/* Tells on standard error what serves where, and what it can hold; with the addresses of its
 * statistics page. */
void server_summary_print(const struct server_generation *g, const struct server_listeners *page);

/* How many worker processes there are in `first` and those behind it. */
unsigned server_summary_workers(const struct server_generation *first);

/* Tells the error log that `g` is in force now, or with NULL that it stays as it was, for the
 * reasons in `report`: lines, which are joined. */
void server_summary_log_reload(const struct server_generation *g, char *report);
