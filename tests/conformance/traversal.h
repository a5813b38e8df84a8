/* SPDX-License-Identifier: MIT
 *
 * Tries to get out of the root: paths made at random of everything that has ever
 * helped somebody to do so.
 */
#pragma once

#include "serve.h"

#include <stdint.h>

/* Asks for `count` paths; returns how many were answered with what lies outside
 * the root, or with a status that such a path must not have. The first few are
 * printed. */
MUST_USE unsigned traversal_try(struct serve *serve, unsigned count, uint64_t seed);
