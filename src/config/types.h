/* SPDX-License-Identifier: MIT
 *
 * The setting `types` of a site: media types and the endings of their files.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

/* Checks a value: `system`, or a media type and at least one ending. On success *ret_text is the
 * canonical form in the arena: one space between the words, endings in lower case and without a
 * dot. */
MUST_USE bool config_types_check(struct span text, struct config_arena *arena,
                                 const char **ret_text, struct config_reason *ret_reason);

/* Checks that no ending of a site has two types. */
void config_types_verify(struct config_store *store, const struct config_section_values *site);
