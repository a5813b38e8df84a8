/* SPDX-License-Identifier: MIT
 *
 * The paths of a configuration file: they begin at the folder of the file.
 *
 * Private to config/.
 */
#pragma once

#include "base/span.h"
#include "config/arena.h"

enum { CONFIG_PATH_MAX = 4096 };

/* Joins `folder`, which is empty or ends with a slash, and `path`, unless `path` is absolute. Steps
 * to a parent folder (`..`) are resolved on the disk, so that people can read the path. Links after
 * the last `..` stay: they may be switched while the server runs. A path that cannot be resolved
 * stays as it is. The arena owns the text. */
const char *config_path_join(struct config_arena *arena, struct span folder, struct span path);
