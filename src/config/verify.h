/* SPDX-License-Identifier: MIT
 *
 * What only the whole configuration and the disk can tell: folders that are
 * missing, two sites for one host, and traps that are allowed but rarely meant.
 * It looks and touches nothing.
 */
#pragma once

struct config_request;
struct config_store;

/* Tells the problems to the store. */
void config_verify(struct config_store *store, const struct config_request *request);
