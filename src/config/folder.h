/* SPDX-License-Identifier: MIT
 *
 * Whether a folder that a setting names can be served by this user. It looks at the disk and opens
 * nothing.
 */
#pragma once

#include "config/store.h"

/* Reports a problem and returns false, if not. Also false without the setting. `to_list`: its names
 * are read, too. */
bool config_folder_check(struct config_store *store, const struct config_section_values *section,
                         enum config_setting_place place, bool to_list);
