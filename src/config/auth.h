/* SPDX-License-Identifier: MIT
 *
 * The settings of passwords. The value of each is checked alone, and `auth` and `auth-realm` also
 * together with the settings beside them. It reads no list of users: `weir check` and the master do
 * that (auth/file.h).
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

/* Checks the form of a value of kind CONFIG_HASH or CONFIG_REALM. */
MUST_USE bool config_auth_check(enum config_kind kind, struct span text,
                                struct config_reason *ret_reason);

/* Checks `auth` and `auth-realm` of all sites and paths, and the order of the sections with
 * `auth`: none may take the effect of another one without a message. Call it after
 * config_rules_build. */
void config_auth_verify(struct config_store *store);
