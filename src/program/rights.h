/* SPDX-License-Identifier: MIT
 *
 * `weir check` for the folders of a configuration that the workers read. They run as another user
 * than a master that is root.
 */
#pragma once

#include "config/read.h"

/* Prints a warning on standard error for each folder, and each error page, that the user of the
 * workers cannot read. Such a site serves, and answers with 403. Returns how many warnings. */
unsigned program_rights_check(const struct config_store *store);
