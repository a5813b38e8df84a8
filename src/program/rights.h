/* SPDX-License-Identifier: MIT
 *
 * `weir check` for the folders of a configuration that the workers read. They run as another user
 * than a master that is root.
 */
#pragma once

#include "config/read.h"

/* Prints an error on standard error for each folder, and each folder of error pages, of which the
 * user of the workers cannot read a part. A start warns of a root only, and its files get 403: a
 * deployment may give the right later. A test comes before anyone is served, so it is the place to
 * be strict. Returns the number of errors. */
unsigned program_rights_check(const struct config_store *store);
