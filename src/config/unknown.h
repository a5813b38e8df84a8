/* SPDX-License-Identifier: MIT
 *
 * The message about a setting that its section does not have: what the operator may have meant, a
 * setting of another section, a slip in the name, or a word of another server.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

/* Reports that `section` has no setting `name`. Where two settings may be meant, the one that the
 * value fits is named. */
void config_unknown_report(struct config_store *store, enum config_section section,
                           struct span name, struct span value, struct config_origin origin);
