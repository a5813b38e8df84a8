/* SPDX-License-Identifier: MIT
 *
 * `weir check --explain PATH`: which sections of the configuration cover a path, and what they do
 * together. Nothing is looked up on the disk: `weir trace` does that.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"

#include <stdio.h>

/* Prints what each site does with a path of a request. False, with the cause in *ret_why: no
 * request can have this path. */
MUST_USE bool trace_path_explain(const struct config *config, const char *path, FILE *out,
                                 const char **ret_why);
