/* SPDX-License-Identifier: MIT
 *
 * The addresses of `listen` against each other: each has one scheme, and is there once.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

#include <stdbool.h>

/* Reports an address that is there as http and as https, or that `localhost` names again. */
void config_listen_verify(struct config_store *store);

/* Whether `item`, a value of another setting, names an address of `listen`. After
 * config_listen_verify. */
bool config_listen_has(const struct config_store *store, const struct config_item *item);
