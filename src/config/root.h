/* SPDX-License-Identifier: MIT
 *
 * The root of a site: whether it has one, whether it needs one, and whether the choice is wise. It
 * looks at the disk and opens nothing.
 */
#pragma once

#include "config/store.h"

struct config_request;

/* False: the root is wrong or missing, and a problem says so. A site needs none if a section
 * answers every request with a redirect or an error. */
bool config_root_check(struct config_store *store, const struct config_section_values *site,
                       const struct config_request *request);

/* Whether the site has a root. If not, the setting `item` is a problem, because it needs a file. */
bool config_root_is_there(struct config_store *store, const struct config_section_values *site,
                          const struct config_item *item, enum config_setting_place place);
