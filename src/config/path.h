/* SPDX-License-Identifier: MIT
 *
 * The paths of a configuration file: they begin at the folder of the file.
 *
 * Private to config/.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "config/arena.h"
#include "config/problem.h"
#include "config/setting.h"

enum { CONFIG_PATH_MAX = 4096 };

/* Checks the path of a setting that names a file or a folder, or a log. On success *ret_text is the
 * word, or the path in the arena. It begins at `folder`, which is empty or ends with a slash,
 * unless it is absolute. Steps to a parent folder (`..`) are resolved on the disk, so that people
 * can read the path. Links after the last `..` stay: they may be switched while the server runs. A
 * path that cannot be resolved stays as it is. On false, ret_reason says why. */
MUST_USE bool config_path_check(const struct config_setting *setting, struct span text,
                                struct span folder, struct config_arena *arena,
                                const char **ret_text, struct config_reason *ret_reason);
