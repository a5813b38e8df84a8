/* SPDX-License-Identifier: MIT
 *
 * Values of settings: checks a text, brings it into its canonical form (lower case, whole path,
 * `Name: value`), and stores that form in the field of struct config.
 *
 * It reads only the text. config/verify.c checks paths on the disk.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"
#include "config/setting.h"

/* Checks one value (trimmed, of one item of a list) of a setting. Relative paths
 * begin at `folder` (with its final slash, or empty). On success *ret_text is the
 * canonical form in the arena; else ret_reason has the reason. */
MUST_USE bool config_value_check(const struct config_setting *setting, struct span text,
                                 struct span folder, struct config_arena *arena,
                                 const char **ret_text, struct config_reason *ret_reason);

/* Puts canonical texts (NULL at the end; one unless the setting is a list) into
 * the setting's field of `section`: a struct config or a struct config_site. The
 * texts are lent for as long as the section is used. */
void config_value_store(const struct config_setting *setting, const char *const *texts,
                        void *section);
