/* SPDX-License-Identifier: MIT
 *
 * The hosts of sites: a request must not belong to two sites.
 */
#pragma once

#include "config/store.h"

/* Reports a host of two sites, and a second site that answers any host. */
void config_hosts_verify(struct config_store *store);
