/* SPDX-License-Identifier: MIT
 *
 * Tries to leave the root, with random paths of the pieces that known attacks use.
 */
#pragma once

#include "serve.h"

#include <stdint.h>

/* Requests `count` paths. Returns how many answers had content from outside the root, or
 * a status that such a path must not have. Prints the first few of them. */
MUST_USE unsigned traversal_try(struct serve *serve, unsigned count, uint64_t seed);
