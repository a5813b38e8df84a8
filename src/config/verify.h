/* SPDX-License-Identifier: MIT
 *
 * The checks that need the whole configuration or the disk: missing folders, two sites for one
 * host, and values that are allowed but rarely intended. They change nothing.
 */
#pragma once

struct config_request;
struct config_store;

/* Adds the problems to the store. */
void config_verify(struct config_store *store, const struct config_request *request);
